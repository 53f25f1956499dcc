// CpuBackend: kernels on host memory, linear algebra by oneDNN, the rest by loops of our own. See
// stage/backends/backend.h for the contract. Every kernel is cut into blocks that depend on the
// shapes alone. The worker pool runs the blocks, so results do not depend on the number of threads.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_CPU_BACKEND_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_CPU_BACKEND_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "stage/backends/backend.h"
#include "stage/backends/cpu/primitives/matmul.h"
#include "stage/backends/cpu/primitives/packed_weights.h"
#include "stage/backends/cpu/primitives/worker_pool.h"
#include "stage/backends/cpu/workspace.h"

namespace stagecoach::cpu {

// How BF16 matrices are multiplied: by the processor's BF16 instructions, or widened to float32
// block by block. Both add up in float32; the bits differ.
enum class Bfloat16Products { kNative, kWidened };
Bfloat16Products BestBfloat16Products();  // native if oneDNN has the instructions

// How convolutions are computed. kBest: by Winograd's filtering if that suits, else by oneDNN's own
// convolution if it is fast, else by products of columns. kDirect: the same without Winograd's.
// kByColumns: always by products of columns.
enum class Convolutions { kBest, kDirect, kByColumns };

// Block sizes depend on nothing but this file. If a block is the unit of a sum, they are part of
// the numerics. Elsewhere they only balance the threads.
inline constexpr int64_t kElementBlock = 16384;  // 64 KiB of floats; a multiple of 4 random words
inline constexpr int64_t kSmallRowBlock = 32;

// Areas of floats, one for each widened operand of a piece; null where nothing is widened.
class Room {
 public:
  Room(float* base, int64_t each) : base_(base), each_(each) {}
  float* operator[](int area) const { return base_ == nullptr ? nullptr : base_ + area * each_; }

 private:
  float* const base_;
  const int64_t each_;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const BackendOptions& options,
                      Bfloat16Products products = BestBfloat16Products(),
                      Convolutions convolutions = Convolutions::kBest);

  std::string fingerprint() const override;
  HostProfile Host() const override;
  absl::StatusOr<CallDescription> Describe(const Call& call, const CallTypes& types,
                                           int64_t samples, DType activation) override;
  std::vector<std::string> WithoutKernels() const override;
  Allocator& allocator() override { return *allocator_; }
  void UseSpareMemory(const SpareMemory& spare) override;
  absl::StatusOr<Kernel> Prepare(const Call& call, const CallTypes& types,
                                 DType activation) override;

  // These give the tensors that they write another version (Buffer::version).
  void Fill(const Tensor& tensor, float value) override;
  void Swap(const Tensor& a, const Tensor& b) override;
  void SquaredNorm(const Tensor& tensor, const Tensor& result) override;
  void Convert(const Tensor& source, const Tensor& target) override;
  void CopyFromHost(std::span<const std::byte> source, const Tensor& target) override;
  void CopyToHost(const Tensor& source, std::span<std::byte> target) override;
  absl::Status Synchronize() override;
  void EndCell() override;

  // Services for kernels (kernels/).
  //
  // body(first, count, worker) for consecutive blocks of `block` out of [0, total).
  using BlockBody = absl::FunctionRef<void(int64_t first, int64_t count, int worker)>;
  void ForEachBlock(int64_t total, int64_t block, BlockBody body);
  // The same for elements (width 1) or rows of `width`, with room for floats if the type is BF16.
  // Then the blocks come in pieces of about kPiece elements, which stay in the first cache.
  using PieceBody = absl::FunctionRef<void(int64_t first, int64_t count, const Room& room)>;
  void ForEachPiece(const Tensor& like, int64_t block, int64_t width, int areas, PieceBody body);
  // Reserves a room for one task, and for other threads as far as spare memory goes. So a limit
  // decides how many threads an operation has, never whether it runs. Returns the number of rooms.
  // If it is 0, Synchronize returns the error.
  int ReserveRooms(int64_t bytes);
  // As ForEachBlock above, with one thread per room; `worker` is the room's number.
  void ForEachBlock(int rooms, int64_t total, int64_t block, BlockBody body);
  // Calls body(task, room) for each task, with one thread per room.
  void ForEachTask(int64_t tasks, int rooms,
                   absl::FunctionRef<void(int64_t task, float* room)> body);
  float* WorkerScratch(int worker) const { return workspace_.Slot(worker); }
  // Memory for the running operation only. Null if the allocator refuses; then Synchronize returns
  // the error.
  float* ReserveShared(int64_t bytes) { return workspace_.Reserve(pool_.threads(), bytes); }
  MatmulCache& matmuls() { return matmuls_; }
  PackedWeights& packed_weights() { return packed_weights_; }
  Bfloat16Products products() const { return products_; }
  Convolutions convolutions() const { return convolutions_; }

 private:
  // Spare memory before UseSpareMemory: all if the memory has no limit, else none.
  SpareMemory DefaultSpare() const;

  const std::unique_ptr<Allocator> allocator_;
  WorkerPool pool_;
  Workspace workspace_;
  PackedWeights packed_weights_;
  SpareMemory spare_;
  MatmulCache matmuls_;
  const Bfloat16Products products_;
  const Convolutions convolutions_;
};

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_CPU_BACKEND_H_
