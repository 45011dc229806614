/* The frame evaluation function (PEP 523), its installation and the per-thread modes. */
#include "native.h"
