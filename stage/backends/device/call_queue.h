// CallQueue: makes one launch of a list of calls, for calls that take the host longer than the
// card. Between BeginCalls and EndCalls calls are not run but queued. The queue is looked up by its
// signature when the list ends, or when anything else is asked of the card (Settle). The signature
// is all that its launches depend on: kernels, shapes and addresses. A new signature runs call by
// call. The second time it is captured into a graph. From then on the graph is launched.
//
//   call      first with these shapes: runs at its place, and shows whether it can be queued
//             draws random numbers, or takes memory for itself: runs at its place,
//               after the queued calls
//             any other: queued
//   signature new: runs call by call -> seen: captured, launched -> known: launched
//             a capture that fails: runs call by call for good
//
// So libraries plan, load and ask for workspaces before anything is captured. No queued call
// allocates: it could get memory that an earlier call of the queue is still to use.
// Ownership: borrows the objects in Parts. It holds no operand. Memory that a queued call uses may
//            be handed out again meanwhile, to calls queued after it. So a Settle comes before work
//            reaches the card past the queue, and before memory goes back to the card.
// Threads:   executor thread only.
// Errors:    a failed capture is no error, and is said once. The calls then run one by one, and
//            each notes its own errors.
// Determinism: the same launches with the same arguments in the same order, so the same bits.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_CALL_QUEUE_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_CALL_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stage/backends/device/call_form.h"
#include "stage/backends/device/device_error.h"
#include "stage/backends/device/graph_api.h"
#include "stage/backends/device/graph_cache.h"
#include "stage/backends/kernel.h"

namespace stagecoach {

class CallQueue {
 public:
  static constexpr size_t kMostLists = 256;  // signatures that are known at a time
  static constexpr size_t kFewestCalls = 3;  // a graph of fewer calls is no faster

  struct Parts {
    GraphApi* api = nullptr;
    DeviceStream stream = nullptr;
    DeviceFault* fault = nullptr;
    std::function<void()> make_current;    // the card, on this thread
    std::function<void(int)> launched;     // this number of calls, as one graph
    std::function<void(std::string)> say;  // a line for the operator's log
    size_t most_lists = kMostLists;
  };
  // Counts since the last Forget.
  struct Counts {
    int64_t replayed = 0, one_by_one = 0;  // lists, or parts of one
    int64_t captured = 0, refused = 0;
  };

  explicit CallQueue(Parts parts)
      : parts_(std::move(parts)), cache_(parts_.api, parts_.most_lists) {}
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;
  ~CallQueue();  // call it with the card current and nothing queued

  // A kernel that goes through the queue, which must outlive it. draws: the kernel uses random
  // numbers, or anything else that differs between steps or micro-batches.
  Kernel Wrap(Kernel kernel, std::string operation, bool draws);

  void BeginCalls() { ++open_; }
  void EndCalls();
  // Launches the queued calls. No-op during that launch.
  void Settle();
  // True while launches are captured. Then nothing else may be asked of the card.
  bool capturing() const { return capturing_; }
  // For the running call: it takes temporary memory, and so must never be queued.
  void TakesMemory();
  // Call it before memory goes back to the card: graphs have addresses in it.
  void ForgetGraphs();
  // Call it if kernels are gone or changed: every call is as if seen for the first time.
  void Forget();

  const Counts& counts() const { return counts_; }

 private:
  // A form of a kernel, from its first run on.
  struct Form {
    Form(std::vector<uint64_t> words, const KernelArguments& arguments)
        : operands(std::move(words), arguments) {}
    CallForm operands;
    uint64_t id = 0;          // unique
    uint64_t generation = 0;  // generation_ when it was inspected; 0: not yet
    bool queues = false;
  };
  struct Prepared {
    Kernel kernel;
    std::string operation;
    bool draws = false;
    std::vector<std::unique_ptr<Form>> forms;  // few: as many as there are sizes of micro-batches
  };
  struct Queued {
    std::shared_ptr<const Prepared> prepared;
    const Form* form;
    ForwardContext run;
    uint32_t layer;
    size_t first_address;  // in the signature
  };

  void Call(const std::shared_ptr<Prepared>& prepared, const KernelContext& context,
            const KernelArguments& arguments);
  Form* FindForm(Prepared* prepared, const KernelContext& context,
                 const KernelArguments& arguments);
  void LookAt(const Prepared& prepared, Form* form, const KernelContext& context,
              const KernelArguments& arguments);
  void LaunchQueued();
  void RunQueued();
  bool Capture(GraphCache::Entry* entry);
  bool Replay(GraphCache::Entry* entry);
  void Refuse(GraphCache::Entry* entry, const std::string& why);
  std::string QueuedText() const;  // "31 calls from layer_norm to linear"
  void SayCounts();

  const Parts parts_;
  GraphCache cache_;
  int open_ = 0;
  bool running_ = false, capturing_ = false;
  bool takes_memory_ = false;  // set by the call that is being inspected
  uint64_t generation_ = 1, next_form_ = 1;
  std::vector<Queued> queued_;
  GraphCache::Signature signature_;          // of the queued calls
  std::vector<uint64_t> words_, addresses_;  // of the current call
  Counts counts_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_CALL_QUEUE_H_
