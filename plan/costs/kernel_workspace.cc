#include "plan/costs/kernel_workspace.h"

#include <algorithm>
#include <string_view>

#include "operations/attention/attention.h"
#include "operations/attention/attention_scratch.h"
#include "operations/attention/cross_attention.h"
#include "operations/attention/packed_heads.h"
#include "operations/attributes.h"
#include "plan/costs/product_scratch.h"
#include "plan/costs/saturate.h"
#include "plan/job/optimizer_slots.h"

namespace stagecoach {
namespace {

constexpr int64_t kF32Bytes = 4, kF64Bytes = 8, kBf16Bytes = 2;
// How products are cut (stage/backends/cpu/products/linear_blocks.h, bfloat16_products.cc).
constexpr int64_t kRowBlock = 128, kWeightBlock = 96, kPackRows = 64;
constexpr int64_t kPanelColumns = 1024, kGradientRows = 512;
constexpr int64_t kLibraryBlock = 64;
// Widened pieces (cpu_backend.cc): of up to three operands; and of columns, 64 rows of 64 at a time
// (column_sums.h).
constexpr int64_t kPiece = 2048, kPieces = 3;
constexpr int64_t kColumnRoom = kF32Bytes * (4 * 64 * 64 + 2 * 64);
constexpr int64_t kUpdateBlock = 16384;
constexpr int64_t kNormChunk = 32768;                    // of batch norm
constexpr int64_t kLossRow = 4 * kF64Bytes + kF32Bytes;  // of cross entropy's table
constexpr int64_t kLine = 64;                            // what is allocated comes in whole ones

int64_t Blocks(int64_t n, int64_t block) { return n / block + (n % block != 0 ? 1 : 0); }

// The second operand is counted as it stands: a lower last block of rows reads it so, and so do
// micro-batches of few rows, as the last ones of an evaluation may be.
int64_t ScratchOfRows(Product p, int64_t rows, const HostProfile& host) {
  p.m = std::min(rows, kRowBlock);
  return ProductScratchBytes(p, host);
}

// y[rows, n] = x[rows, k] weight[k, n]: RunRowProduct, RunPanelProduct.
KernelWorkspace OfRows(int64_t rows, int64_t k, int64_t n, bool narrow, const HostProfile& host) {
  if (rows == 0 || n == 0) return {};
  const bool packs = rows >= kPackRows;
  if (!narrow) {
    return {ScratchOfRows({.k = k, .n = n}, rows, host),
            packs ? PackedMatrixBytes(k, n, kF32Bytes) : 0};
  }
  const int64_t panels = Blocks(n, kPanelColumns);
  const int64_t columns = std::min(SaturatingRoundUp(Blocks(n, panels), kLibraryBlock), n);
  const int64_t m = std::min(rows, kRowBlock),
                element = host.native_bfloat16 ? kBf16Bytes : kF32Bytes;
  KernelWorkspace taken;
  const Product product = {.k = k, .n = columns, .bfloat16 = host.native_bfloat16};
  taken.room = SaturatingAdd(SaturatingRoundUp(ScratchOfRows(product, rows, host), kLine),
                             2 * SaturatingRoundUp(kF32Bytes * m * columns, kLine));
  taken.shared = SaturatingRoundUp(kF32Bytes * columns, kLine);  // the bias
  if (packs) taken.shared = SaturatingAdd(taken.shared, PackedMatrixBytes(k, columns, element));
  if (!host.native_bfloat16) {
    taken.room = SaturatingAdd(taken.room, SaturatingMultiply(kF32Bytes * m, k));
    taken.shared = SaturatingAdd(
        taken.shared, SaturatingRoundUp(SaturatingMultiply(kF32Bytes * columns, k), kLine));
  }
  return taken;
}

// d_weight[out, in] += dy[rows, out]^T x[rows, in], of `rows` at once: AddWeightGradientFloat32,
// AddSomeRows.
KernelWorkspace OfGradientRows(int64_t rows, int64_t in, int64_t out, bool narrow,
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
  KernelWorkspace taken{SaturatingRoundUp(scratch, kLine), 0};
  if (!narrow) return taken;
  taken.shared =
      native ? PackedMatrixBytes(rows, in, kBf16Bytes) : SaturatingMultiply(kF32Bytes * rows, in);
  if (!native) taken.room += kF32Bytes * rows * std::min(out, kWeightBlock);
  return taken;
}

// Of bfloat16 some rows at a time.
KernelWorkspace OfWeightGradient(int64_t rows, int64_t in, int64_t out, bool narrow,
                                 const HostProfile& host) {
  if (!narrow) return OfGradientRows(rows, in, out, false, host);
  KernelWorkspace taken = OfGradientRows(std::min(rows, kGradientRows), in, out, true, host);
  taken.Raise(OfGradientRows(rows % kGradientRows, in, out, true, host));
  return taken;
}

KernelWorkspace OfScores(int64_t columns, int64_t head_width, bool gradient) {
  return {kF32Bytes * (gradient ? AttentionScratch::Backward(columns, head_width)
                                : AttentionScratch::Forward(columns, head_width)),
          0};
}

KernelWorkspace OfAttention(const Call& call, const ValueType& qkv, bool gradient) {
  const auto attributes = *FromAttributes<AttentionAttributes>(call.attributes);
  const PackedHeads heads = PackedHeadsOf(qkv, attributes.heads, attributes.key_heads);
  return OfScores(heads.context, heads.head_width, gradient);
}

KernelWorkspace OfCrossAttention(const Call& call, const ValueType& q, const ValueType& kv,
                                 bool gradient) {
  const auto attributes = *FromAttributes<CrossAttentionAttributes>(call.attributes);
  const CrossHeads heads = CrossHeadsOf(attributes, q, kv);
  return OfScores(heads.columns, heads.head_width, gradient);
}

// Rows of few channels are walked several at a time, so a chunk has from half of kNormChunk
// elements on, or one row.
int64_t NormTable(const ValueType& x, int64_t samples) {
  const int64_t elements = TypeElements(x, samples), channels = x.shape.back();
  const int64_t width = std::max<int64_t>(channels, kLibraryBlock);
  const int64_t chunks = Blocks(elements, std::max(kNormChunk / 2, channels)) + 1;
  return SaturatingMultiply(SaturatingMultiply(chunks, 2 * kF32Bytes), width);
}

// What any other operation takes: rows of bfloat16 are widened piece by piece.
KernelWorkspace OfRest(const CallTypes& types, bool narrow) {
  if (!narrow) return {kColumnRoom / 64, 0};
  int64_t widest = 0;
  for (const auto* side : {&types.inputs, &types.outputs, &types.adds}) {
    for (const ValueType& type : *side) {
      if (type.shape.rank() > 0) widest = std::max(widest, type.shape.back());
    }
  }
  const int64_t piece = std::max(kPiece, SaturatingRoundUp(widest, 16));
  return {std::max(kColumnRoom, kF32Bytes * kPieces * piece), 0};
}

KernelWorkspace OfCall(const Call& call, const CallTypes& types, int64_t samples, bool narrow,
                       const HostProfile& host) {
  const std::string_view operation = call.operation;
  KernelWorkspace taken = OfRest(types, narrow);
  if (operation == "linear" || operation == "linear_input_gradient") {
    const Shape& weight = types.inputs[1].shape;
    const bool forward = operation == "linear";
    taken.Raise(OfRows(RuntimeShape(types.inputs[0], samples)[0], weight[forward ? 1 : 0],
                       weight[forward ? 0 : 1], narrow, host));
  } else if (operation == "linear_weight_gradient") {
    const Shape& weight = types.adds[0].shape;
    // Some micro-batches have a sample less, and fewer rows may take more scratch.
    for (const int64_t of : {samples, samples - 1}) {
      taken.Raise(OfWeightGradient(RuntimeShape(types.inputs[0], of)[0], weight[1], weight[0],
                                   narrow, host));
    }
  } else if (operation == "attention") {
    taken.Raise(OfAttention(call, types.inputs[0], false));
  } else if (operation == "attention_gradient") {
    taken.Raise(OfAttention(call, types.inputs[1], true));
  } else if (operation == "cross_attention") {
    taken.Raise(OfCrossAttention(call, types.inputs[0], types.inputs[1], false));
  } else if (operation == "cross_attention_gradient") {
    taken.Raise(OfCrossAttention(call, types.inputs[1], types.inputs[2], true));
  } else if (operation.starts_with("batch_norm")) {
    const int64_t widened =
        2 * kF32Bytes * std::max(kNormChunk, types.inputs[0].shape.back());  // of two operands
    taken.Raise({narrow ? widened : 0, NormTable(types.inputs[0], samples)});
  } else if (operation == "head_norm_weight_gradient") {
    taken.Raise({0, kF32Bytes * types.inputs[0].shape.back()});
  }
  return taken;
}

// Of the loss: a table of all rows, or a sum for each block.
KernelWorkspace OfObjective(const Network& network, int64_t samples, bool narrow) {
  const ValueType& output = network.wire(network.objective.output).type;
  const int64_t rows = RuntimeShape(output, samples)[0], elements = TypeElements(output, samples);
  const int64_t widest = SaturatingRoundUp(output.shape.back(), 16);
  return {narrow ? kF32Bytes * std::max(kPiece, widest) : 0,
          std::max(SaturatingMultiply(rows, kLossRow), kF64Bytes * (elements / kUpdateBlock + 1))};
}

}  // namespace

void KernelWorkspace::Raise(const KernelWorkspace& other) {
  room = std::max(room, other.room);
  shared = std::max(shared, other.shared);
}

KernelWorkspace KernelWorkspaceOf(const Network& network, int first, int last, int64_t samples,
                                  const HostProfile& host) {
  const bool narrow = network.precision == Precision::kBfloat16;
  KernelWorkspace most;
  for (int layer = first; layer < last; ++layer) {
    const LayerLists& lists = *network.layers[static_cast<size_t>(layer)].lists;
    for (const CallList* list : {&lists.forward, &lists.evaluation, &lists.backward}) {
      for (const ListedCall& listed : list->calls) {
        most.Raise(OfCall(listed.call, lists.TypesOf(listed.call), samples, narrow, host));
      }
    }
    for (const ParameterSpec& parameter : network.layers[static_cast<size_t>(layer)].parameters) {
      most.shared = std::max(
          most.shared, 2 * kF64Bytes * (parameter.shape.elements() / kUpdateBlock + 1));  // norms
    }
  }
  if (last == static_cast<int>(network.layers.size())) {
    most.Raise(OfObjective(network, samples, narrow));
  }
  return most;
}

int64_t SmallTensorBytes(const Network& network, int first, int last, int64_t micro_batches,
                         const OptimizerSpec& optimizer) {
  int64_t parameters = 0, states = 0, values = 0, stashed = 0, slots = 0;
  for (int layer = first; layer < last; ++layer) {
    const NetworkLayer& at = network.layers[static_cast<size_t>(layer)];
    parameters += static_cast<int64_t>(at.parameters.size());
    for (const ParameterSpec& parameter : at.parameters) {
      slots += static_cast<int64_t>(OptimizerStates(optimizer, parameter.shape).size());
    }
    states += static_cast<int64_t>(at.states.size());
    values = std::max(values, static_cast<int64_t>(at.lists->values.size()));
    stashed += static_cast<int64_t>(at.lists->stash.size());
  }
  // Values, gradients, copies and slots are each of whole lines; so are stashes and the values of a
  // layer at work.
  int64_t lines = 3 * parameters + slots + 2 * states + values + 4;
  lines = SaturatingAdd(lines, SaturatingMultiply(stashed, micro_batches));
  int64_t bytes = SaturatingMultiply(kLine, lines);
  bytes += kF64Bytes * parameters;  // norms of gradients
  if (last < static_cast<int>(network.layers.size())) return bytes;
  // Sums of the loss by micro-batch, of classes too where they are counted, and of an auxiliary
  // one.
  const bool counted = network.objective.has("mean_iou") || network.objective.has("per_class");
  const int64_t sums = static_cast<int64_t>(network.objective.sums.size()) + 4 +
                       (counted ? 3 * network.classes() : 0);
  return SaturatingAdd(bytes, SaturatingMultiply(2 * kF64Bytes * micro_batches, sums));
}

}  // namespace stagecoach
