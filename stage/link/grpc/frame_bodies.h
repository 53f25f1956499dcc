// The field numbers of link.proto, and each message without its checksum: for frame_encoder.cc and frame_decoder.cc.
#ifndef STAGECOACH_STAGE_LINK_GRPC_FRAME_BODIES_H_
#define STAGECOACH_STAGE_LINK_GRPC_FRAME_BODIES_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "stage/link/link.h"

namespace stagecoach::link_fields {

// Field numbers of link.proto and of stage.proto's Fence.
enum Envelope { kHello = 1, kCredit = 2, kFrame = 3, kRepeat = 4 };
enum HelloField { kHelloFence = 1, kUpstream = 2, kProtocol = 3, kCapacity = 4, kHelloCrc = 5 };
enum CreditField { kTaken = 1, kCreditRound = 2, kCreditCrc = 3 };
enum RepeatField { kRepeatRound = 1, kNext = 2, kRepeatCrc = 3 };
enum FenceField { kFenceJob = 1, kFenceTerm = 2, kFenceGeneration = 3 };
enum FrameField {
  kTerm = 1,
  kGeneration = 2,
  kStep = 3,
  kAttempt = 4,
  kKind = 5,
  kMicroBatch = 6,
  kTensorIndex = 7,
  kTensorCount = 8,
  kDType = 9,
  kShape = 10,
  kOffset = 11,
  kSent = 12,
  kCrc = 13,
  kHeadCrc = 14,
  kData = 15
};

// Numbers of a message as they are on the wire, whatever their ranges: by field number.
template <int kFields>
using Numbers = std::array<uint64_t, kFields + 1>;

// The messages without their checksums, and a frame's without its data.
std::string HelloBody(const BoundaryId& boundary, const Numbers<kHelloCrc>& numbers);
std::string CreditBody(const Numbers<kCreditCrc>& numbers);
std::string RepeatBody(const Numbers<kRepeatCrc>& numbers);
std::string FrameBody(const Numbers<kData>& numbers, const std::vector<int64_t>& shape);

// Of a head, as it is written: a flipped bit that makes another micro-batch of this one must not pass.
uint32_t HeadChecksum(const std::string& head);

}  // namespace stagecoach::link_fields

#endif  // STAGECOACH_STAGE_LINK_GRPC_FRAME_BODIES_H_
