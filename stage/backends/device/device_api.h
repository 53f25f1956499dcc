// DeviceApi: the runtime calls of a card that can fail, for the host-side parts (allocators,
// staging, error texts). In production the CUDA runtime is behind it. In tests a fake is, so that
// these parts are tested on machines without a card.
// Ownership: handles are the runtime's; the object that creates one destroys it.
// Threads:   thread-safe. A call for memory makes the card current on its thread first.
// Errors:    codes; 0 is success. device_error.h makes statuses of them.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_API_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_API_H_

#include <cstdint>
#include <string>

namespace stagecoach {

// Codes are the runtime's own numbers; those that the project tells apart have a name.
namespace device_code {
inline constexpr int kSuccess = 0;
inline constexpr int kOutOfMemory = 2;
inline constexpr int kInsufficientDriver = 35;
inline constexpr int kNoDevice = 100;
inline constexpr int kInvalidDevice = 101;
inline constexpr int kNotReady = 600;
}  // namespace device_code

using DeviceStream = void*;
using DeviceEvent = void*;

struct DeviceProperties {
  std::string name;            // "NVIDIA H200"
  int compute_capability = 0;  // 90 means 9.0
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
};

class DeviceApi {
 public:
  virtual ~DeviceApi() = default;

  virtual std::string ErrorName(int code) const = 0;  // "cudaErrorIllegalAddress"
  virtual std::string ErrorText(int code) const = 0;  // "an illegal memory access was encountered"

  virtual int DriverVersion(int* version) = 0;   // 12040 means 12.4; 0: no driver
  virtual int RuntimeVersion(int* version) = 0;  // of the build
  virtual int DeviceCount(int* count) = 0;
  virtual int Properties(int ordinal, DeviceProperties* properties) = 0;
  virtual int SetDevice(int ordinal) = 0;  // for the calling thread
  virtual int MemoryInfo(int64_t* free_bytes, int64_t* total_bytes) = 0;

  virtual int Allocate(int64_t bytes, void** data) = 0;
  virtual int Free(void* data) = 0;
  virtual int AllocatePinned(int64_t bytes, void** data) = 0;
  virtual int FreePinned(void* data) = 0;

  virtual int CreateStream(DeviceStream* stream) = 0;
  virtual int DestroyStream(DeviceStream stream) = 0;
  virtual int SynchronizeStream(DeviceStream stream) = 0;
  // Copies to or from pinned memory, asynchronously.
  virtual int CopyToHost(void* target, const void* source, int64_t bytes, DeviceStream stream) = 0;
  virtual int CopyFromHost(void* target, const void* source, int64_t bytes,
                           DeviceStream stream) = 0;

  virtual int CreateEvent(DeviceEvent* event) = 0;
  // An event that keeps the time when it was passed. An event without time is cheaper.
  virtual int CreateTimingEvent(DeviceEvent* event) = 0;
  virtual int ElapsedNanos(DeviceEvent from, DeviceEvent to, int64_t* nanos) = 0;  // both passed
  virtual int DestroyEvent(DeviceEvent event) = 0;
  virtual int RecordEvent(DeviceEvent event, DeviceStream stream) = 0;
  virtual int QueryEvent(DeviceEvent event) = 0;  // kNotReady until the stream has passed it
  virtual int SynchronizeEvent(DeviceEvent event) = 0;
  // Work queued on the stream later waits for the event's last record before this call.
  virtual int StreamWaitEvent(DeviceStream stream, DeviceEvent event) = 0;
  // Calls function(data) on a thread of the runtime when the stream gets there; the stream waits
  // for it. The function must not call the runtime. No call if the card has failed.
  virtual int CallHost(DeviceStream stream, void (*function)(void*), void* data) = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_API_H_
