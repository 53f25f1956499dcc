// FakeDeviceApi: a card made of host memory, for tests. Every stream has a queue of its own.
// Nothing runs before a caller waits for it or lets the card run. A wait runs only what it needs;
// RunSome draws the order of the streams from a seed. So a test finds a missing wait, whichever
// stream was late. Any call can be told to fail.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_TESTING_FAKE_DEVICE_API_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_TESTING_FAKE_DEVICE_API_H_

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/numbers/random.h"
#include "stage/backends/device/device_api.h"

namespace stagecoach {

// A record of an event. A wait for it does not wait for later records.
struct FakeRecord {
  DeviceStream stream = nullptr;
  bool passed = false;
  int64_t passed_nanos = 0;
};

class FakeDeviceApi final : public DeviceApi {
 public:
  static constexpr int kIllegalAddress = 700;

  int driver = 13000, runtime = 13000, cards = 2;
  int count_code = 0;                 // result of DeviceCount
  int64_t total = 1 << 20, used = 0;  // bytes of the card
  int fault = 0;                      // once set, every call on the card fails, as on a real one
  int pinned_code = 0;
  int event_code = 0;  // result of the next creation of an event
  int current = -1;
  int capability = 90;
  int device_allocations = 0, pinned_allocations = 0;
  int run_per_query = 0;    // pieces of work that the card does before each QueryEvent
  int64_t now_nanos = 0;    // its clock
  uint64_t order_seed = 0;  // draws the order of the streams
  std::map<void*, std::shared_ptr<FakeRecord>> events;  // their last records
  std::map<void*, int64_t> blocks;                      // of the card
  std::set<void*> pinned;

  ~FakeDeviceApi() override {
    for (auto& [data, bytes] : blocks) std::free(data);
    for (void* data : pinned) std::free(data);
    for (auto& [event, record] : events) delete static_cast<char*>(event);
  }

  // Runs all queued work, as a card does in its own time.
  void RunAll() { RunSome(std::numeric_limits<int>::max()); }
  void RunSome(int pieces) {
    for (; pieces > 0; --pieces) {
      std::vector<FakeStream*> ready;
      for (auto& [handle, stream] : streams_) {
        if (!stream->empty() && Ready(stream->front())) ready.push_back(stream.get());
      }
      if (ready.empty()) {
        CHECK_EQ(queued(), 0u) << "streams wait for each other";
        return;
      }
      RunFront(ready[RandomBits({.seed = order_seed}, draws_++) % ready.size()]);
    }
  }
  size_t queued() const {
    size_t count = 0;
    for (const auto& [handle, stream] : streams_) count += stream->size();
    return count;
  }

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

  int CreateStream(DeviceStream* stream) override {
    if (fault != 0) return fault;
    auto made = std::make_unique<FakeStream>();
    *stream = made.get();
    streams_[*stream] = std::move(made);
    return 0;
  }
  int DestroyStream(DeviceStream stream) override {
    Finish(stream);
    streams_.erase(stream);
    return fault;
  }
  int SynchronizeStream(DeviceStream stream) override { return Finish(stream), fault; }
  int CopyToHost(void* target, const void* source, int64_t bytes, DeviceStream stream) override {
    return Queue([=] { std::memcpy(target, source, static_cast<size_t>(bytes)); }, stream);
  }
  int CopyFromHost(void* target, const void* source, int64_t bytes, DeviceStream stream) override {
    return Queue([=] { std::memcpy(target, source, static_cast<size_t>(bytes)); }, stream);
  }
  // Queues work of any kind.
  int Queue(std::function<void()> run, DeviceStream stream) {
    if (fault == 0) streams_.at(stream)->push_back({.run = std::move(run)});
    return fault;
  }
  int CallHost(DeviceStream stream, void (*function)(void*), void* data) override {
    return Queue([=] { function(data); }, stream);
  }

  int CreateEvent(DeviceEvent* event) override {
    if (fault != 0) return fault;
    if (event_code != 0) return std::exchange(event_code, 0);
    *event = new char;
    events[*event] = std::make_shared<FakeRecord>(FakeRecord{.passed = true});
    return 0;
  }
  int CreateTimingEvent(DeviceEvent* event) override { return CreateEvent(event); }
  int ElapsedNanos(DeviceEvent from, DeviceEvent to, int64_t* nanos) override {
    CHECK(events.at(from)->passed && events.at(to)->passed) << "nobody waited for them";
    *nanos = events.at(to)->passed_nanos - events.at(from)->passed_nanos;
    return fault;
  }
  int DestroyEvent(DeviceEvent event) override {
    events.erase(event);
    delete static_cast<char*>(event);
    return fault;
  }
  int RecordEvent(DeviceEvent event, DeviceStream stream) override {
    if (fault != 0) return fault;
    auto record = std::make_shared<FakeRecord>(FakeRecord{.stream = stream});
    events.at(event) = record;
    return Queue(
        [this, record] {
          record->passed = true;
          record->passed_nanos = now_nanos;
        },
        stream);
  }
  int QueryEvent(DeviceEvent event) override {
    if (fault != 0) return fault;
    RunSome(run_per_query);
    return events.at(event)->passed ? 0 : device_code::kNotReady;
  }
  int SynchronizeEvent(DeviceEvent event) override {
    Pass(*events.at(event));
    return fault;
  }
  int StreamWaitEvent(DeviceStream stream, DeviceEvent event) override {
    if (fault != 0) return fault;
    streams_.at(stream)->push_back({.after = events.at(event)});
    return 0;
  }

 private:
  // A piece of work, or a wait for a record.
  struct Work {
    std::function<void()> run;
    std::shared_ptr<FakeRecord> after;
  };
  using FakeStream = std::deque<Work>;

  static bool Ready(const Work& work) { return work.after == nullptr || work.after->passed; }
  static void RunFront(FakeStream* stream) {
    const Work work = std::move(stream->front());
    stream->pop_front();
    if (work.run) work.run();
  }
  // Runs the work that must come before the record, and no more.
  void Pass(const FakeRecord& record) {
    while (!record.passed) RunNext(streams_.at(record.stream).get());
  }
  void RunNext(FakeStream* stream) {
    if (!Ready(stream->front())) Pass(*stream->front().after);
    RunFront(stream);
  }
  void Finish(DeviceStream stream) {
    FakeStream* const of = streams_.at(stream).get();
    while (!of->empty()) RunNext(of);
  }

  std::map<DeviceStream, std::unique_ptr<FakeStream>> streams_;
  uint64_t draws_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_TESTING_FAKE_DEVICE_API_H_
