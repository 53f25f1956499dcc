#include "services/common/convert/convert_card.h"

#include <algorithm>

#include "services/common/convert/convert_spec.h"

namespace stagecoach {
namespace {

constexpr int32_t kMostThreads = 1 << 12;  // a stage may say anything

}  // namespace

v1::Card ToProto(const CardProfile& card) {
  v1::Card proto;
  if (!card.attention) return proto;
  v1::AttentionKernels& attention = *proto.mutable_attention();
  attention.set_name(card.attention->name);
  for (const Precision precision : card.attention->precisions) {
    attention.add_precisions(ToProto(precision));
  }
  attention.set_tile(card.attention->tile);
  attention.set_widest_head(card.attention->widest_head);
  attention.set_head_multiple(card.attention->head_multiple);
  attention.set_score_bytes(card.attention->score_bytes);
  return proto;
}

CardProfile FromProto(const v1::Card& proto) {
  CardProfile card;
  if (!proto.has_attention()) return card;
  const v1::AttentionKernels& attention = proto.attention();
  card.attention = AttentionKernels{
      .name = attention.name(),
      .tile = std::max<int64_t>(attention.tile(), 1),
      .widest_head = attention.widest_head(),
      .head_multiple = std::max<int64_t>(attention.head_multiple(), 1),
      .score_bytes = std::max<int64_t>(attention.score_bytes(), 0),
  };
  for (const Precision precision :
       {Precision::kFloat32, Precision::kTensorFloat32, Precision::kBfloat16}) {
    const auto& all = attention.precisions();
    if (std::find(all.begin(), all.end(), ToProto(precision)) != all.end()) {
      card.attention->precisions.push_back(precision);
    }
  }
  return card;
}

v1::Processor ToProto(const HostProfile& host) {
  v1::Processor proto;
  proto.set_threads(host.threads);
  proto.set_no_avx512(!host.avx512);
  proto.set_native_bfloat16(host.native_bfloat16);
  return proto;
}

HostProfile FromProto(const v1::Processor& proto) {
  return {.threads = std::clamp(proto.threads(), 1, kMostThreads),
          .avx512 = !proto.no_avx512(),
          .native_bfloat16 = proto.native_bfloat16()};
}

}  // namespace stagecoach
