// CallDescription: what one call of an operation takes on a device beside its operands, and the
// kernel that computes it. Pure functions describe calls for a kind of device (devices/host,
// devices/card), and a back end for the device that it is (Backend::Describe). A test holds the
// kernels to it (stage/backends/conformance/measured_backend.h).
// Units:     bytes; upper bounds. Sizes beyond 64 bits come out as the largest number.
#ifndef STAGECOACH_DEVICES_CALL_DESCRIPTION_H_
#define STAGECOACH_DEVICES_CALL_DESCRIPTION_H_

#include <algorithm>
#include <cstdint>
#include <string>

namespace stagecoach {

struct CallDescription {
  int64_t room = 0;    // of each thread at work
  int64_t shared = 0;  // of the call
  // From one micro-batch to the next, if there is spare memory: packed weights. Otherwise `shared`
  // has room for them.
  int64_t kept = 0;
  // The same of weights that never change, as those of a job that writes: more than a training may
  // keep.
  int64_t kept_constant = 0;
  std::string way;  // name of the kernel; empty: there is only one
  std::string why;  // for people: why not a faster one
  // Devices with equal fingerprints may compute the call in another way, with other bits. The way
  // is a part of the job's fingerprint.
  bool way_varies = false;

  // For a call that needs this memory at another moment of its run.
  void Raise(int64_t other_room, int64_t other_shared) {
    room = std::max(room, other_room);
    shared = std::max(shared, other_shared);
  }
  friend bool operator==(const CallDescription&, const CallDescription&) = default;
};

}  // namespace stagecoach

#endif  // STAGECOACH_DEVICES_CALL_DESCRIPTION_H_
