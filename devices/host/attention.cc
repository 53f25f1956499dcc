// Attention: the scores of a block of queries and the unit's keys and values, as kernels lay them
// out.
#include "operations/attention/attention.h"

#include "devices/host/host_calls.h"
#include "operations/attention/attention_scratch.h"
#include "operations/attention/cached_attention.h"
#include "operations/attention/cross_attention.h"
#include "operations/attention/packed_heads.h"
#include "operations/attributes.h"

namespace stagecoach {
namespace {

using ScratchFloats = int64_t (*)(int64_t columns, int64_t head_width);

CallDescription DescribeUnit(const HostCall& of, int64_t floats) {
  CallDescription description = DescribeRest(of);
  description.Raise(kFloat32Bytes * floats, 0);
  return description;
}

CallDescription DescribePacked(const HostCall& of, const ValueType& qkv, ScratchFloats floats) {
  const auto attributes = *FromAttributes<AttentionAttributes>(of.call.attributes);
  const PackedHeads heads = PackedHeadsOf(qkv, attributes.heads, attributes.key_heads);
  return DescribeUnit(of, floats(heads.context, heads.head_width));
}

CallDescription DescribeCross(const HostCall& of, const ValueType& q, const ValueType& kv,
                              ScratchFloats floats) {
  const auto attributes = *FromAttributes<CrossAttentionAttributes>(of.call.attributes);
  const CrossHeads heads = CrossHeadsOf(attributes, q, kv);
  return DescribeUnit(of, floats(heads.columns, heads.head_width));
}

CallDescription DescribeAttention(const HostCall& of) {
  return DescribePacked(of, of.types.inputs[0], AttentionScratch::Forward);
}
CallDescription DescribeAttentionGradient(const HostCall& of) {
  return DescribePacked(of, of.types.inputs[1], AttentionScratch::Backward);
}
CallDescription DescribeCrossAttention(const HostCall& of) {
  return DescribeCross(of, of.types.inputs[0], of.types.inputs[1], AttentionScratch::Forward);
}
CallDescription DescribeCrossAttentionGradient(const HostCall& of) {
  return DescribeCross(of, of.types.inputs[1], of.types.inputs[2], AttentionScratch::Backward);
}
CallDescription DescribeCachedAttention(const HostCall& of) {
  const auto attributes = *FromAttributes<CachedAttentionAttributes>(of.call.attributes);
  const CachedHeads heads = CachedHeadsOf(attributes, of.types);
  return DescribeUnit(of, AttentionScratch::Cached(heads.context, heads.head_width));
}

}  // namespace

HostEntries AttentionsOnHost() {
  return {{"attention", DescribeAttention},
          {"attention_gradient", DescribeAttentionGradient},
          {"cross_attention", DescribeCrossAttention},
          {"cross_attention_gradient", DescribeCrossAttentionGradient},
          {"cached_attention", DescribeCachedAttention}};
}

}  // namespace stagecoach
