/* Region, Entry and CodeState: what hangs on a code object. */
#include "native.h"
