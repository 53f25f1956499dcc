#include "devices/host/product_scratch.h"

#include <algorithm>

#include "base/numbers/saturate.h"

namespace stagecoach {
namespace {

constexpr int64_t kSingle = 4, kHalf = 2;
constexpr int64_t kColumns = 64;    // of B in one copy; blocks of the packed order
constexpr int64_t kNotes = 1024;    // what is noted of blocks
constexpr int64_t kTiles = 4096;    // of AMX
constexpr int64_t kDepth = 512;     // of k in one copy, and twice that where k is larger
constexpr int64_t kFewRows = 96;    // of A turned, whose product has one copy of B
constexpr int64_t kPairDepth = 32;  // of bfloat16 that a block takes without a copy

int64_t MatrixBytes(int64_t rows, int64_t columns, int64_t element) {
  return SaturatingMultiply(SaturatingMultiply(rows, columns), element);
}

int64_t Float32Scratch(const Product& p) {
  const int64_t depth = SaturatingRoundUp(p.k, 16);
  if (!p.turned) {
    if (p.packed || p.n == 1) return kNotes;
    const int64_t copied = p.k <= kDepth ? depth : p.k <= 2 * kDepth ? kDepth : 2 * kDepth;
    return kNotes + MatrixBytes(copied, kColumns, kSingle);
  }
  // Lines of A are 16 elements longer where k fills a block.
  if (p.k > kDepth) {
    const int64_t b = MatrixBytes(5 * kDepth / 2, kColumns, kSingle);
    return kNotes + MatrixBytes(p.m, 2 * kDepth + 16, kSingle) + (p.m > kFewRows ? 2 * b : b);
  }
  // B is read in place unless its rows lie a multiple of 2 KiB apart.
  const int64_t b = p.n % kDepth == 0 ? MatrixBytes(depth, kColumns, kSingle) : 0;
  return kNotes + MatrixBytes(p.m, depth + 16, kSingle) + b;
}

int64_t Bfloat16Scratch(const Product& p) {
  const int64_t notes =
      kNotes + kTiles +
      (p.k > kDepth ? SaturatingMultiply(17, SaturatingRoundUp(p.k, kColumns)) : 0);
  if (p.k % kPairDepth == 0) {
    int64_t bytes = notes;
    if (p.turned)
      bytes += MatrixBytes(p.m <= 64 ? p.m : SaturatingRoundUp(p.m, 64), p.k + kPairDepth, kHalf);
    if (!p.packed) bytes = SaturatingAdd(bytes, MatrixBytes(p.k, kColumns, kHalf));
    return bytes;
  }
  // The library copies A and B with zeros behind them, and sums into a block of its own.
  const int64_t depth = SaturatingRoundUp(p.k, kColumns), rows = SaturatingRoundUp(p.m, 128);
  int64_t bytes = SaturatingAdd(64 * kNotes, SaturatingMultiply(p.k, kSingle));
  bytes = SaturatingAdd(bytes, MatrixBytes(rows, depth, p.packed ? 2 * kHalf : kHalf));
  if (!p.packed) {
    bytes = SaturatingAdd(
        bytes, MatrixBytes(depth, std::max(SaturatingRoundUp(p.n, kColumns), 4 * kColumns), kHalf));
  }
  return SaturatingAdd(bytes, MatrixBytes(rows, SaturatingRoundUp(p.n, kColumns), kSingle));
}

}  // namespace

int64_t ProductScratchBytes(const Product& product, const HostProfile& host) {
  if (!host.avx512) return 0;
  return product.bfloat16 ? Bfloat16Scratch(product) : Float32Scratch(product);
}

int64_t PackedMatrixBytes(int64_t k, int64_t n, int64_t element) {
  // AMX takes 96 columns of bfloat16 where there are 64.
  const int64_t columns =
      std::max(SaturatingRoundUp(n, kColumns), element == kHalf ? int64_t{96} : 0);
  return MatrixBytes(SaturatingRoundUp(k, kColumns), columns, element);
}

}  // namespace stagecoach
