// FakeDeviceApi: a card made of host memory, for tests. Copies are queued and run when an event or
// the stream is waited for, so that a test sees who did not wait; any call can be told to fail.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_FAKE_DEVICE_API_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_FAKE_DEVICE_API_H_

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "stage/backends/device/device_api.h"

namespace stagecoach {

class FakeDeviceApi final : public DeviceApi {
 public:
  static constexpr int kIllegalAddress = 700;

  int driver = 13000, runtime = 13000, cards = 2;
  int count_code = 0;                 // what DeviceCount answers
  int64_t total = 1 << 20, used = 0;  // bytes of the card
  int fault = 0;                      // once set, every call on the card meets it, as on a real one
  int pinned_code = 0;
  int current = -1;
  int capability = 90;
  int device_allocations = 0, pinned_allocations = 0;
  std::set<void*> events;
  std::map<void*, int64_t> blocks;  // of the card
  std::set<void*> pinned;

  ~FakeDeviceApi() override {
    for (auto& [data, bytes] : blocks) std::free(data);
    for (void* data : pinned) std::free(data);
    for (void* event : events) delete static_cast<int*>(event);
  }

  // Runs queued work; what a card does in its own time.
  void RunAll() { RunUntil(queued_.size()); }
  size_t queued() const { return queued_.size(); }

  std::string ErrorName(int code) const override {
    switch (code) {
      case device_code::kOutOfMemory:
        return "cudaErrorMemoryAllocation";
      case device_code::kInsufficientDriver:
        return "cudaErrorInsufficientDriver";
      case device_code::kNoDevice:
        return "cudaErrorNoDevice";
      case kIllegalAddress:
        return "cudaErrorIllegalAddress";
      default:
        return "error " + std::to_string(code);
    }
  }
  std::string ErrorText(int code) const override {
    return code == device_code::kOutOfMemory ? "out of memory" : "text of " + std::to_string(code);
  }

  int DriverVersion(int* version) override { return *version = driver, 0; }
  int RuntimeVersion(int* version) override { return *version = runtime, 0; }
  int DeviceCount(int* count) override { return *count = cards, count_code; }
  int Properties(int, DeviceProperties* properties) override {
    *properties = {"Fake", capability, 4, total};
    return fault;
  }
  int SetDevice(int ordinal) override { return current = ordinal, fault; }
  int MemoryInfo(int64_t* free_bytes, int64_t* total_bytes) override {
    *free_bytes = total - used;
    *total_bytes = total;
    return fault;
  }

  int Allocate(int64_t bytes, void** data) override {
    if (fault != 0) return fault;
    if (used + bytes > total) return device_code::kOutOfMemory;
    *data = std::aligned_alloc(256, static_cast<size_t>(bytes));
    blocks[*data] = bytes;
    used += bytes;
    ++device_allocations;
    return 0;
  }
  int Free(void* data) override {
    RunAll();  // the real one waits as well
    used -= blocks.at(data);
    blocks.erase(data);
    std::free(data);
    return fault;
  }
  int AllocatePinned(int64_t bytes, void** data) override {
    if (fault != 0 || pinned_code != 0) return fault != 0 ? fault : pinned_code;
    *data = std::aligned_alloc(4096, static_cast<size_t>(bytes));
    pinned.insert(*data);
    ++pinned_allocations;
    return 0;
  }
  int FreePinned(void* data) override {
    RunAll();
    pinned.erase(data);
    std::free(data);
    return fault;
  }

  int CreateStream(DeviceStream* stream) override { return *stream = this, fault; }
  int DestroyStream(DeviceStream) override { return fault; }
  int SynchronizeStream(DeviceStream) override { return RunAll(), fault; }
  int CopyToHost(void* target, const void* source, int64_t bytes, DeviceStream) override {
    return Queue([=] { std::memcpy(target, source, static_cast<size_t>(bytes)); });
  }
  int CopyFromHost(void* target, const void* source, int64_t bytes, DeviceStream) override {
    return Queue([=] { std::memcpy(target, source, static_cast<size_t>(bytes)); });
  }
  // Work of any kind.
  int Queue(std::function<void()> work) {
    if (fault == 0) queued_.push_back(std::move(work));
    return fault;
  }

  // An event is the number of pieces of work that must have run.
  int CreateEvent(DeviceEvent* event) override {
    if (fault == 0) events.insert(*event = new int(0));
    return fault;
  }
  int DestroyEvent(DeviceEvent event) override {
    events.erase(event);
    delete static_cast<int*>(event);
    return fault;
  }
  int RecordEvent(DeviceEvent event, DeviceStream) override {
    *static_cast<int*>(event) = done_ + static_cast<int>(queued_.size());
    return fault;
  }
  int QueryEvent(DeviceEvent event) override {
    if (fault != 0) return fault;
    return *static_cast<int*>(event) <= done_ ? 0 : device_code::kNotReady;
  }
  int SynchronizeEvent(DeviceEvent event) override {
    const int target = *static_cast<int*>(event);
    if (target > done_) RunUntil(static_cast<size_t>(target - done_));
    return fault;
  }

 private:
  void RunUntil(size_t count) {
    for (; count > 0; --count, ++done_) {
      queued_.front()();
      queued_.pop_front();
    }
  }

  std::deque<std::function<void()>> queued_;
  int done_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_FAKE_DEVICE_API_H_
