// What becomes of a control message when a bit of it is flipped on its way: it is written, checked
// and read by the real conversion and checksum.
// Errors: UNAVAILABLE where the other side would find out; what the other side made of it where it
//         does not.
#ifndef STAGECOACH_TESTS_SIMULATION_CONTROL_MESSAGES_H_
#define STAGECOACH_TESTS_SIMULATION_CONTROL_MESSAGES_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/errors/status.h"
#include "services/common/convert/convert_control.h"
#include "services/common/convert/convert_snapshot.h"
#include "services/common/grpc/message_checksum.h"
#include "tests/simulation/host/seeded_random.h"

namespace stagecoach {

template <typename Value>
absl::StatusOr<Value> Flipped(const Value& value, SeededRandom& random) {
  auto message = ToProto(value);
  SetChecksum(&message);
  std::string bytes = message.SerializeAsString();
  bytes[random.Below(bytes.size())] ^= static_cast<char>(1 << random.Below(8));
  decltype(message) arrived;
  if (!arrived.ParseFromString(bytes)) {
    return absl::UnavailableError("a message that cannot be read (INTERNAL)");  // own_error.h
  }
  RETURN_IF_ERROR(CheckChecksum(&arrived));
  return FromProto(arrived);
}

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_CONTROL_MESSAGES_H_
