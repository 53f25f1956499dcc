// Product scratch: what oneDNN 2.6.3 takes beside its operands for one product on a processor with
// AVX-512, at most. Below AVX-512 products take none.
//   The library copies blocks of an operand that is not in its order. It says how large they are on
//   the machine only; the bounds here were fitted to its answers, and
//   stage/backends/cpu/products/product_scratch_test.cc compares them on every machine.
// Units:     elements and bytes; sizes beyond 64 bits come out as the largest number.
// Threads:   pure functions.
#ifndef STAGECOACH_DEVICES_HOST_PRODUCT_SCRATCH_H_
#define STAGECOACH_DEVICES_HOST_PRODUCT_SCRATCH_H_

#include <cstdint>

#include "devices/host/host_profile.h"

namespace stagecoach {

// C[m, n] = A[m, k] B[k, n].
struct Product {
  int64_t m = 0, k = 0, n = 0;
  bool turned = false;    // A lies by columns, and the product adds to C
  bool packed = false;    // B comes in the library's order
  bool bfloat16 = false;  // A and B are
};

// Rises with m, and in float32 with k. In bfloat16 a depth k that 32 does not divide may take more
// than a larger one.
int64_t ProductScratchBytes(const Product& product, const HostProfile& host);

// Bytes of a matrix [k, n] in the library's order. element: bytes of an element.
int64_t PackedMatrixBytes(int64_t k, int64_t n, int64_t element);

}  // namespace stagecoach

#endif  // STAGECOACH_DEVICES_HOST_PRODUCT_SCRATCH_H_
