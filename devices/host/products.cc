// Products of linear maps: scratch of the library, a reordered or widened weight, and sums of a
// panel. They are cut as linear_blocks.h says.
#include <algorithm>

#include "base/numbers/saturate.h"
#include "devices/host/host_calls.h"
#include "devices/host/linear_blocks.h"
#include "devices/host/product_scratch.h"

namespace stagecoach {
namespace {

constexpr int64_t kLibraryBlock = 64;

struct ProductMemory {
  int64_t room = 0, shared = 0;
};

// The second operand is counted as it stands: a lower last block of rows may read it so, and so do
// micro-batches of few rows, as the last ones of an evaluation may be.
int64_t ScratchOfRows(Product p, int64_t rows, const HostProfile& host) {
  p.m = std::min(rows, kRowBlock);
  return ProductScratchBytes(p, host);
}

// y[rows, n] = x[rows, k] weight[k, n]: RunRowProduct, RunPanelProduct.
ProductMemory OfRows(int64_t rows, int64_t k, int64_t n, bool narrow, const HostProfile& host) {
  if (rows == 0 || n == 0) return {};
  const bool packs = rows >= kRowsToPack;
  if (!narrow) {
    return {ScratchOfRows({.k = k, .n = n}, rows, host),
            packs ? PackedMatrixBytes(k, n, kFloat32Bytes) : 0};
  }
  const int64_t panels = BlocksOf(n, kPanelColumns);
  const int64_t columns = std::min(SaturatingRoundUp(BlocksOf(n, panels), kLibraryBlock), n);
  const int64_t m = std::min(rows, kRowBlock),
                element = host.native_bfloat16 ? kBfloat16Bytes : kFloat32Bytes;
  ProductMemory taken;
  const Product product = {.k = k, .n = columns, .bfloat16 = host.native_bfloat16};
  taken.room = SaturatingAdd(SaturatingRoundUp(ScratchOfRows(product, rows, host), kLineBytes),
                             2 * SaturatingRoundUp(kFloat32Bytes * m * columns, kLineBytes));
  taken.shared = SaturatingRoundUp(kFloat32Bytes * columns, kLineBytes);  // the bias
  if (packs) taken.shared = SaturatingAdd(taken.shared, PackedMatrixBytes(k, columns, element));
  if (!host.native_bfloat16) {
    taken.room = SaturatingAdd(taken.room, SaturatingMultiply(kFloat32Bytes * m, k));
    taken.shared = SaturatingAdd(
        taken.shared,
        SaturatingRoundUp(SaturatingMultiply(kFloat32Bytes * columns, k), kLineBytes));
  }
  return taken;
}

// d_weight[out, in] += dy[rows, out]^T x[rows, in], of `rows` at once: AddWeightGradientFloat32,
// AddSomeRows.
ProductMemory OfGradientRows(int64_t rows, int64_t in, int64_t out, bool narrow,
                             const HostProfile& host) {
  if (rows == 0) return {};
  const bool native = narrow && host.native_bfloat16;
  Product p{.m = std::min(out, kWeightBlock),
            .k = rows,
            .n = in,
            .turned = true,
            .packed = native,
            .bfloat16 = native};
  int64_t scratch = ProductScratchBytes(p, host);
  p.m = out % p.m;  // reads its second operand as it stands
  p.packed = false;
  if (p.m > 0) scratch = std::max(scratch, ProductScratchBytes(p, host));
  ProductMemory taken{SaturatingRoundUp(scratch, kLineBytes), 0};
  if (!narrow) return taken;
  taken.shared = native ? PackedMatrixBytes(rows, in, kBfloat16Bytes)
                        : SaturatingMultiply(kFloat32Bytes * rows, in);
  if (!native) taken.room += kFloat32Bytes * rows * std::min(out, kWeightBlock);
  return taken;
}

void RaiseTo(const ProductMemory& taken, CallDescription* description) {
  description->Raise(taken.room, taken.shared);
}

CallDescription DescribeLinear(const HostCall& of) {
  CallDescription description = DescribeRest(of);
  const Shape& weight = of.types.inputs[1].shape;
  const int64_t rows = RuntimeShape(of.types.inputs[0], of.samples)[0];
  RaiseTo(OfRows(rows, weight[1], weight[0], of.narrow, of.host), &description);
  if (!of.narrow)
    description.kept_constant = PackedMatrixBytes(weight[1], weight[0], kFloat32Bytes);
  return description;
}

CallDescription DescribeLinearInputs(const HostCall& of) {
  CallDescription description = DescribeRest(of);
  const Shape& weight = of.types.inputs[1].shape;
  const int64_t rows = RuntimeShape(of.types.inputs[0], of.samples)[0];
  RaiseTo(OfRows(rows, weight[0], weight[1], of.narrow, of.host), &description);
  return description;
}

// Some micro-batches have a sample less, and fewer rows may take more scratch. In bfloat16 the
// kernel adds some rows at a time.
CallDescription DescribeLinearWeights(const HostCall& of) {
  CallDescription description = DescribeRest(of);
  const Shape& weight = of.types.adds[0].shape;
  const int64_t in = weight[1], out = weight[0];
  for (const int64_t samples : {of.samples, of.samples - 1}) {
    const int64_t rows = RuntimeShape(of.types.inputs[0], samples)[0];
    if (!of.narrow) {
      RaiseTo(OfGradientRows(rows, in, out, false, of.host), &description);
      continue;
    }
    for (const int64_t some : {std::min(rows, kGradientRows), rows % kGradientRows}) {
      RaiseTo(OfGradientRows(some, in, out, true, of.host), &description);
    }
  }
  return description;
}

}  // namespace

HostEntries ProductsOnHost() {
  return {{"linear", DescribeLinear},
          {"linear_input_gradient", DescribeLinearInputs},
          {"linear_weight_gradient", DescribeLinearWeights}};
}

}  // namespace stagecoach
