/* Running other code in a frame: in place, as a call of its own, or not at all. */
#include "native.h"
