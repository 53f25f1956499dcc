// Backend: a device. It makes kernels for the calls that layers consist of. Its own functions are
// independent of the network: memory, copies, fills and conversions, norms of gradients. Numerics
// stop at this line. The reference back end (plain loops, double accumulation where it says so) is
// the truth. The conformance rows in stage/backends/conformance hold the cpu and cuda back ends to
// it.
// Ownership: one back end per stage process; arguments are borrowed for the call (CPU) or until
//            Synchronize (devices with a queue).
// Threads:   called from the executor thread only, except Fault. allocator() is thread-safe.
// Units and shapes: row-major.
// Element types: each operand of a call has its type (operations/value_type.h).
//            Element::kActivation is F32 or BF16 by the job's precision (base/numbers/precision.h).
//            Every other element has one type in all precisions. With BF16 the arithmetic is the same, of the widened values in float32 or better. Each
//            output is rounded once, to nearest even.
// Errors:    a call cannot fail by itself: the layer checked the shapes (CHECK here), and memory
//            was allocated before. A device's error is sticky and comes back from Synchronize. A
//            refusal of memory that an operation needs for itself is sticky too, but only until
//            EndCell.
// Determinism: the result is a pure function of the arguments' values and shapes: not of the number
//            of threads, of addresses, or of earlier calls. Reductions run in one fixed order.
#ifndef STAGECOACH_STAGE_BACKENDS_BACKEND_H_
#define STAGECOACH_STAGE_BACKENDS_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/errors/check.h"
#include "base/numbers/precision.h"
#include "devices/call_description.h"
#include "devices/card/card_profile.h"
#include "devices/host/host_profile.h"
#include "network/passes/head_chunks.h"
#include "operations/operation.h"
#include "plan/costs/spare_memory.h"
#include "stage/backends/kernel.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

class Backend {
 public:
  virtual ~Backend() = default;

  // What must be equal for equal bits: library versions, instruction set; not the number of
  // threads.
  virtual std::string fingerprint() const = 0;
  // Memory and way of a call of a micro-batch with so many samples on this device (devices/): what
  // the allocator gives the call at most beside its operands, in whole lines. `activation`: as for
  // Prepare. The call may build a library's plan for the shape, once, which takes seconds. Errors:
  // UNIMPLEMENTED if there is no kernel for it, naming operation and back end; what is missing or
  // broken and must not be hidden by another kernel.
  virtual absl::StatusOr<CallDescription> Describe(const Call& call, const CallTypes& types,
                                                   int64_t samples, DType activation) = 0;
  // The operations of the catalogue that it has no kernel for, by name. A plan must not use them
  // here.
  virtual std::vector<std::string> WithoutKernels() const = 0;
  // What a memory forecast must know of it, if it is a card.
  virtual std::optional<CardProfile> Card() const { return std::nullopt; }
  virtual HostProfile Host() const { return {}; }  // the same, if it is a processor
  virtual Allocator& allocator() = 0;
  // Where links keep what they carry; the host reads and writes it. Other than allocator() where
  // the device's memory is not the host's: BoundaryPort then copies by the calls at the end.
  virtual Allocator& link_allocator() { return allocator(); }
  // For the job at hand, before its first operation. Operations learn from their tensors whether
  // they are in BF16; what is left to say is whether float32 products may be TF32.
  virtual void SetPrecision(Precision) {}
  // For the job at hand too: memory that the stage has beyond what the job needs. Before this call,
  // and after EndCell: all if the memory has no limit, else none.
  virtual void UseSpareMemory(const SpareMemory&) {}
  // From one row of a training's logits to the next (network/passes/padded_output.h), for kernels
  // that are faster where rows begin at certain addresses.
  virtual int64_t LogitsStride(int64_t columns, DType) const { return columns; }
  // Size of the chunks of rows in which the last layer and the loss run together, where a network
  // allows it (network/passes/head_chunks.h). None: they run as a whole.
  virtual std::optional<HeadChunkLimits> HeadChunks() const { return std::nullopt; }
  // Makes a call of an operation ready to be run again and again on tensors of these types; the
  // back end outlives the kernel. `activation`: the type that Element::kActivation has. Errors:
  // UNIMPLEMENTED if there is no kernel for it, naming operation and back end; the kernel's error
  // if it cannot take these types.
  virtual absl::StatusOr<Kernel> Prepare(const Call& call, const CallTypes& types,
                                         DType activation) = 0;
  // The same for calls of one operation that share no operand, one or more: the results of one
  // after the other, maybe in fewer launches. For updates, of all parameters of a cell.
  virtual absl::StatusOr<KernelOfAll> PrepareAll(std::span<const Call> calls,
                                                 std::span<const CallTypes> types,
                                                 DType activation) {
    std::vector<Kernel> kernels;
    for (size_t i = 0; i < calls.size(); ++i) {
      absl::StatusOr<Kernel> kernel = Prepare(calls[i], types[i], activation);
      if (!kernel.ok()) return kernel.status();
      kernels.push_back(*std::move(kernel));
    }
    return [kernels = std::move(kernels)](const KernelContext& context,
                                          std::span<const KernelArguments> all) {
      for (size_t i = 0; i < all.size(); ++i) kernels[i](context, all[i]);
    };
  }

  // A kernel for other lengths could not be prepared in the middle of a step. Synchronize answers with
  // it, as with a device's error. A back end on a processor refuses none that it took before (CHECK).
  virtual void NoteUnprepared(const absl::Status& status) { CHECK_OK(status); }

  // Between the two the caller runs kernels one after the other, in the order of a list. A device
  // may keep these calls and launch many at once, by EndCalls at the latest. If the caller asks the
  // back end for a result in between, the calls so far are done first.
  virtual void BeginCalls() {}
  virtual void EndCalls() {}

  // Work outside the calls of a network: setting gradients to zero and states to their initial
  // values, norms of gradients.
  virtual void Fill(const Tensor& tensor, float value) = 0;
  // F32 of equal shapes: each gets what the other has.
  virtual void Swap(const Tensor& a, const Tensor& b) = 0;
  // result (F64, 1 element) = sum of squares, accumulated in double; not finite iff an element is
  // not.
  virtual void SquaredNorm(const Tensor& tensor, const Tensor& result) = 0;
  // All parameters of a cell at once: the same results as one after the other, in fewer launches.
  virtual void FillAll(std::span<const Tensor> all, float value) {  // F32
    for (const Tensor& tensor : all) Fill(tensor, value);
  }
  struct SwapArgs {
    Tensor a, b;
  };
  virtual void SwapAll(std::span<const SwapArgs> all) {
    for (const SwapArgs& args : all) Swap(args.a, args.b);
  }
  struct NormArgs {
    Tensor tensor, result;
  };
  virtual void SquaredNorms(std::span<const NormArgs> all) {
    for (const NormArgs& args : all) SquaredNorm(args.tensor, args.result);
  }
  // target = source in target's type, F32 or BF16 (to nearest even) each, equal shapes.
  virtual void Convert(const Tensor& source, const Tensor& target) = 0;

  virtual void CopyFromHost(std::span<const std::byte> source, const Tensor& target) = 0;
  virtual void CopyToHost(const Tensor& source, std::span<std::byte> target) = 0;  // synchronizes
  // Between allocator() and link_allocator(), where these differ. Copies may be queued. The back
  // end then holds source and target until the copy has run, even if the caller lets go of them.
  // CopyToLink copies the values that the calls before it leave. The target may be sent once
  // LinkCopyDone(the number returned) is true. Copies run in the order in which they were started.
  virtual absl::StatusOr<uint64_t> CopyToLink(const Tensor& source, const Tensor& target) {
    CopyToHost(source, target.span());
    const absl::Status status = Synchronize();
    if (!status.ok()) return status;
    return 0;
  }
  virtual absl::StatusOr<bool> LinkCopyDone(uint64_t /*copy*/) { return true; }
  // A tensor of allocator() that has the source's values for whatever is queued later.
  virtual absl::StatusOr<Tensor> CopyFromLink(const Tensor& source) {
    absl::StatusOr<Tensor> target =
        MakeTensor(allocator(), MemoryKind::kActivations, source.dtype(), source.shape());
    if (!target.ok()) return target;
    CopyFromHost(source.span(), *target);
    const absl::Status status = Synchronize();
    if (!status.ok()) return status;
    return target;
  }
  // Called on any thread, at once and under no lock, when a copy to a link has run: the thread that
  // waits for the copy looks again. If the device has failed, the call may not come.
  virtual void OnLinkCopyDone(std::function<void()>) {}
  // The step has ended or was given up: lets go of what was made ready for its next copies.
  virtual void EndLinkCopies() {}
  virtual absl::Status Synchronize() = 0;
  // For devices that run behind the host: calls TickProgress() if work has run since the last call.
  // A thread that waits for something else calls this now and then. Synchronize and CopyToHost tick
  // by themselves.
  virtual void TellProgress() {}
  // The layers that called the operations are gone: lets go of memory kept for them and forgets
  // what it was refused. A fault of the device stays.
  virtual void EndCell() {}
  // Not ok once the device is lost to this process: the first error that it met. Any thread.
  virtual absl::Status Fault() const { return absl::OkStatus(); }
  // For tables of times: names the library algorithms, or own kernels, that computed the calls
  // since the last TakeWays, each once. Empty: there is one way only.
  virtual std::vector<std::string> TakeWays() { return {}; }
  // For devices that run behind the host: marks the time at which the device reaches the work that
  // is queued next. False: there is no such clock, and all calls have run.
  virtual bool MarkTime() { return false; }
  // All marks since the last call, in nanoseconds after the first; waits for them. Empty if one is
  // missing.
  virtual std::vector<int64_t> TakeTimes() { return {}; }
};

// Scope of the calls of one or more lists: BeginCalls when it is made, EndCalls when it goes.
class CallsOfLists {
 public:
  explicit CallsOfLists(Backend& backend) : backend_(backend) { backend_.BeginCalls(); }
  CallsOfLists(const CallsOfLists&) = delete;
  CallsOfLists& operator=(const CallsOfLists&) = delete;
  ~CallsOfLists() { backend_.EndCalls(); }

 private:
  Backend& backend_;
};

// True if links carry copies, because the host does not read the device's memory.
inline bool CopiesForLinks(Backend& backend) {
  return &backend.link_allocator() != &backend.allocator();
}

struct BackendOptions {
  int threads = 1;                 // results do not depend on it
  int64_t memory_limit_bytes = 0;  // 0: none
  int worker_nice = 0;             // of helper threads; the caller's own is the caller's business
  // File of the matrix algorithms to take (stage/backends/cuda/matmul/matmul_table.h), for cards
  // alone; empty: the library's own choice.
  std::string matmul_table = {};
  // One launch for the calls of a micro-batch (stage/backends/device/call_queue.h), for cards
  // alone.
  bool cuda_graphs = false;
  // Takes lines for the operator's log; on the thread that calls the back end. Null: nobody reads
  // them.
  std::function<void(const std::string&)> say = nullptr;
};

std::unique_ptr<Backend> MakeReferenceBackend(const BackendOptions& options);
std::unique_ptr<Backend> MakeCpuBackend(const BackendOptions& options);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_BACKEND_H_
