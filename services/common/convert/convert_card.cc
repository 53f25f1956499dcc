#include "services/common/convert/convert_card.h"

#include <algorithm>

#include "services/common/convert/fields/message_fields.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {

static void VisitFields(MessageVisitor& visit, AttentionKernels& attention) {
  visit.Field("name", attention.name);
  visit.Field("tile", attention.tile);
  visit.Field("widest_head", attention.widest_head);
  visit.Field("head_multiple", attention.head_multiple);
  visit.Field("score_bytes", attention.score_bytes);
}

namespace {

constexpr int32_t kMostThreads = 1 << 12;  // a stage may say anything

}  // namespace

v1::Card ToProto(const CardProfile& card) {
  v1::Card proto;
  if (!card.attention) return proto;
  WriteMessage(*card.attention, proto.mutable_attention());
  for (const Precision precision : card.attention->precisions) {
    proto.mutable_attention()->add_precisions(ToProto(precision));
  }
  return proto;
}

CardProfile FromProto(const v1::Card& proto) {
  CardProfile card;
  if (!proto.has_attention()) return card;
  auto& attention = card.attention.emplace(ValueOf<AttentionKernels>(proto.attention()));
  attention.tile = std::max<int64_t>(attention.tile, 1);
  attention.head_multiple = std::max<int64_t>(attention.head_multiple, 1);
  attention.score_bytes = std::max<int64_t>(attention.score_bytes, 0);
  for (const Precision precision :
       {Precision::kFloat32, Precision::kTensorFloat32, Precision::kBfloat16}) {
    const auto& all = proto.attention().precisions();
    if (std::find(all.begin(), all.end(), ToProto(precision)) != all.end()) {
      attention.precisions.push_back(precision);
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
