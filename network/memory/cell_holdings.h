// Memory that a cell holds while it works, counted by holder: wires that stashes keep, and
// gradients of wires. Memory with several holders counts once.
// Ownership: values; the network outlives them.
// Threads:   one owner.
// Units:     bytes of a micro-batch of a given number of samples.
#ifndef STAGECOACH_NETWORK_MEMORY_CELL_HOLDINGS_H_
#define STAGECOACH_NETWORK_MEMORY_CELL_HOLDINGS_H_

#include <cstdint>
#include <vector>

#include "network/network.h"

namespace stagecoach {

// Bytes of a wire for each sample or for all: the one place for sizes.
class WireSizes {
 public:
  WireSizes(const Network& network, int64_t samples) : network_(network), samples_(samples) {}
  int64_t Bytes(WireId id) const {
    return TypeBytes(network_.wire(id).type, samples_, ComputeDType(network_.precision));
  }
  int64_t Bytes(const std::vector<WireId>& ids) const {
    int64_t sum = 0;
    for (const WireId id : ids) sum += Bytes(id);
    return sum;
  }
  // Bytes of the float32 numbers of a data source, if the network rounds them to another type.
  int64_t RoundedFrom(WireId id) const {
    const ValueType& type = network_.wire(id).type;
    const DType dtype = ComputeDType(network_.precision);
    if (type.element != Element::kActivation || dtype == DType::kF32) return 0;
    return TypeBytes(type, samples_, DType::kF32);
  }

 private:
  const Network& network_;
  const int64_t samples_;
};

// Memory of stashes: wires, which several layers may keep, and each layer's other values.
class Stashes {
 public:
  Stashes(const WireSizes& sizes, size_t wires) : sizes_(sizes), keepers_(wires, 0) {}

  void Keep(WireId id) {
    if (At(id)++ == 0) bytes_ += sizes_.Bytes(id);
  }
  void Drop(WireId id) {
    if (--At(id) == 0) bytes_ -= sizes_.Bytes(id);
  }
  void KeepInner(int64_t bytes) { bytes_ += bytes; }
  void DropInner(int64_t bytes) { bytes_ -= bytes; }
  bool IsShared(WireId id) const { return keepers_[static_cast<size_t>(id.value)] > 1; }
  int64_t bytes() const { return bytes_; }

 private:
  int& At(WireId id) { return keepers_[static_cast<size_t>(id.value)]; }

  const WireSizes& sizes_;
  std::vector<int> keepers_;  // by wire: layers
  int64_t bytes_ = 0;
};

// Which gradients share memory: a sum hands its incoming gradient on to all its terms.
class Gradients {
 public:
  Gradients(const WireSizes& sizes, size_t wires) : sizes_(sizes), buffer_of_(wires, -1) {}

  int New(WireId id) {
    buffers_.push_back({sizes_.Bytes(id), 0});
    return static_cast<int>(buffers_.size()) - 1;
  }
  void Keep(int buffer) {
    Buffer& held = buffers_[static_cast<size_t>(buffer)];
    if (held.holders++ == 0) bytes_ += held.bytes;
  }
  void Hold(WireId id, int buffer) {
    Keep(buffer);
    At(id) = buffer;
  }
  void Drop(WireId id) {
    if (At(id) >= 0) Release(At(id));
    At(id) = -1;
  }
  void Release(int buffer) {
    Buffer& held = buffers_[static_cast<size_t>(buffer)];
    if (--held.holders == 0) bytes_ -= held.bytes;
  }
  int Of(WireId id) const { return buffer_of_[static_cast<size_t>(id.value)]; }
  bool IsShared(int buffer) const { return buffers_[static_cast<size_t>(buffer)].holders > 1; }
  int64_t bytes() const { return bytes_; }

  // Adds another share, whose memory is held already. Returns the peak meanwhile.
  int64_t Add(WireId id, int share) {
    int64_t peak = bytes_;
    if (At(id) < 0) {
      At(id) = share;
      return peak;
    }
    if (IsShared(At(id))) {  // the sum has a place of its own
      const int sum = New(id);
      Keep(sum);
      peak = bytes_;
      Release(At(id));
      At(id) = sum;
    }
    Release(share);
    return peak;
  }

 private:
  struct Buffer {
    int64_t bytes = 0;
    int holders = 0;
  };
  int& At(WireId id) { return buffer_of_[static_cast<size_t>(id.value)]; }

  const WireSizes& sizes_;
  std::vector<int> buffer_of_;  // by wire; -1: none
  std::vector<Buffer> buffers_;
  int64_t bytes_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_MEMORY_CELL_HOLDINGS_H_
