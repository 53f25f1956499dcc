#include "stage/backends/cpu/cpu_backend.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/numbers/bfloat16.h"
#include "base/numbers/saturate.h"
#include "devices/host/describe.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/kernels.h"

namespace stagecoach::cpu {
namespace {

// Elements that are widened at a time: 8 KiB of floats for each operand.
constexpr int64_t kPiece = 2048;

// Rooms up to here are small beside what a plan may be off by: every thread has one.

// Goes up with every change of what a kernel of ours rounds, so that no job is computed by old and
// new ones.
constexpr int kKernelsVersion = 5;

// oneDNN goes by the sizes of the caches when it cuts convolutions into blocks, and so into sums.
std::string CacheSizes() {
  return absl::StrCat(sysconf(_SC_LEVEL1_DCACHE_SIZE) >> 10, "+",
                      sysconf(_SC_LEVEL2_CACHE_SIZE) >> 10, " KiB");
}

}  // namespace

Bfloat16Products BestBfloat16Products() {
  return OneDnnHasBfloat16() ? Bfloat16Products::kNative : Bfloat16Products::kWidened;
}

CpuBackend::CpuBackend(const BackendOptions& options, Bfloat16Products products,
                       Convolutions convolutions)
    : allocator_(MakeHostAllocator(options.memory_limit_bytes)),
      pool_(std::max(1, options.threads), options.worker_nice),
      workspace_(allocator_.get(), pool_.threads() + 1),
      packed_weights_(allocator_.get(), {.convolutions = options.memory_limit_bytes <= 0}),
      spare_(DefaultSpare()),
      products_(products),
      convolutions_(convolutions) {}

std::string CpuBackend::fingerprint() const {
  return absl::StrCat("cpu ", OneDnnFingerprint(), " caches ", CacheSizes(), " kernels ",
                      kKernelsVersion, " ", KernelTarget(), " BF16 ",
                      products_ == Bfloat16Products::kNative ? "native" : "widened");
}

HostProfile CpuBackend::Host() const {
  return {.threads = pool_.threads(),
          .avx512 = OneDnnHasAvx512(),
          .native_bfloat16 = products_ == Bfloat16Products::kNative};
}

STAGECOACH_LISTED(Giver<KernelList>, Kernels, STAGECOACH_OPERATIONS)

const KernelTable<CpuBackend>& Kernels() {
  static const auto* const table = new KernelTable<CpuBackend>("cpu", CallEach(kListedKernels));
  return *table;
}

absl::StatusOr<Kernel> CpuBackend::Prepare(const Call& call, const CallTypes& types,
                                           DType activation) {
  return Kernels().Prepare(*this, call, types, activation);
}

absl::StatusOr<CallDescription> CpuBackend::Describe(const Call& call, const CallTypes& types,
                                                     int64_t samples, DType activation) {
  constexpr int64_t kLine = 64;  // of the allocator
  RETURN_IF_ERROR(Kernels().Check(call));
  CallDescription description = DescribeOnHost(Host(), call, types, samples, activation);
  for (int64_t* const bytes :
       {&description.room, &description.shared, &description.kept, &description.kept_constant}) {
    *bytes = SaturatingRoundUp(*bytes, kLine);
  }
  return description;
}

std::vector<std::string> CpuBackend::WithoutKernels() const { return Kernels().WithoutKernels(); }

absl::Status CpuBackend::Synchronize() {
  return workspace_.status().ok() ? packed_weights_.status() : workspace_.status();
}

void CpuBackend::EndCell() {
  workspace_.Clear();
  packed_weights_.Clear();
  spare_ = DefaultSpare();
}

SpareMemory CpuBackend::DefaultSpare() const {
  if (allocator_->Use().limit > 0) return {};
  return {.packed_weights = true, .rooms = std::numeric_limits<int64_t>::max()};
}

void CpuBackend::UseSpareMemory(const SpareMemory& spare) {
  packed_weights_.Keep({.convolutions = spare.packed_weights, .products = spare.packed_products});
  spare_ = spare;
}

void CpuBackend::ForEachBlock(int64_t total, int64_t block, BlockBody body) {
  pool_.Run((total + block - 1) / block, [&](int64_t task, int worker) {
    const int64_t first = task * block;
    body(first, std::min(block, total - first), worker);
  });
}

void CpuBackend::ForEachBlock(int rooms, int64_t total, int64_t block, BlockBody body) {
  if (rooms >= pool_.threads()) return ForEachBlock(total, block, body);
  const int64_t tasks = (total + block - 1) / block;
  std::atomic<int64_t> next{0};
  pool_.Run(std::min<int64_t>(rooms, tasks), [&](int64_t room, int) {
    for (int64_t task = next++; task < tasks; task = next++) {
      const int64_t first = task * block;
      body(first, std::min(block, total - first), static_cast<int>(room));
      TickProgress();
    }
  });
}

int CpuBackend::ReserveRooms(int64_t bytes) {
  int64_t more = pool_.threads() - 1;
  if (bytes > kSmallRoomBytes) {
    // A room is as large as what it had to hold before, which stays.
    int64_t spare = spare_.rooms;
    for (int64_t room = 1; room <= more; ++room) {
      const int64_t taken = std::max(workspace_.Bytes(static_cast<int>(room)), bytes);
      if (taken > spare) more = room - 1;
      spare -= taken;
    }
  }
  // First what others must do without, so that old and new need not fit at once.
  for (int64_t room = more + 1; room < pool_.threads(); ++room) {
    workspace_.Free(static_cast<int>(room), kSmallRoomBytes);
  }
  for (int64_t room = 0; room <= more; ++room) {
    if (workspace_.Reserve(static_cast<int>(room), std::max<int64_t>(bytes, 64)) == nullptr)
      return 0;
  }
  return static_cast<int>(more) + 1;
}

void CpuBackend::ForEachTask(int64_t tasks, int rooms,
                             absl::FunctionRef<void(int64_t task, float* room)> body) {
  std::atomic<int64_t> next{0};
  pool_.Run(std::min<int64_t>(rooms, tasks), [&](int64_t room, int) {
    float* const memory = workspace_.Slot(static_cast<int>(room));
    for (int64_t task = next++; task < tasks; task = next++) body(task, memory);
  });
}

void CpuBackend::ForEachPiece(const Tensor& like, int64_t block, int64_t width, int areas,
                              PieceBody body) {
  const bool wide = IsBfloat16(like);
  const int64_t most = std::min(block, std::max<int64_t>(1, kPiece / std::max<int64_t>(1, width)));
  const int64_t area = (most * width + 15) / 16 * 16;
  const int64_t rows = width == 0 ? 0 : like.elements() / width;
  if (!wide) {
    return ForEachBlock(rows, block, [&](int64_t first, int64_t count, int) {
      body(first, count, Room(nullptr, 0));
    });
  }
  const int rooms = ReserveRooms(areas * area * static_cast<int64_t>(sizeof(float)));
  if (rooms == 0) return;
  ForEachBlock(rooms, rows, block, [&](int64_t first, int64_t count, int worker) {
    const Room room(WorkerScratch(worker), area);
    for (int64_t done = 0; done < count; done += most) {
      body(first + done, std::min(most, count - done), room);
    }
  });
}

void CpuBackend::Fill(const Tensor& tensor, float value) {
  tensor.buffer()->Rewritten();
  const FloatOutput y(tensor);
  ForEachPiece(tensor, kElementBlock, 1, 1, [&](int64_t first, int64_t count, const Room& room) {
    FillWith(y.At(first, room[0]), value, count);
    y.Finish(first, count, room[0]);
  });
}

void CpuBackend::Swap(const Tensor& a, const Tensor& b) {
  CHECK_EQ(a.elements(), b.elements()) << "swap";
  a.buffer()->Rewritten();
  b.buffer()->Rewritten();
  float *x = a.data<float>(), *y = b.data<float>();
  ForEachBlock(a.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    std::swap_ranges(x + first, x + first + count, y + first);
  });
}

void CpuBackend::SquaredNorm(const Tensor& tensor, const Tensor& result) {
  const float* x = tensor.data<float>();
  const int64_t blocks = (tensor.elements() + kElementBlock - 1) / kElementBlock;
  auto* partial = reinterpret_cast<double*>(
      ReserveShared(std::max<int64_t>(blocks, 1) * static_cast<int64_t>(sizeof(double))));
  if (partial == nullptr) return;
  ForEachBlock(tensor.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    partial[first / kElementBlock] = SumOfSquares(x + first, count);
  });
  double sum = 0;
  for (int64_t i = 0; i < blocks; ++i) sum += partial[i];
  result.data<double>()[0] = sum;
}

void CpuBackend::CopyFromHost(std::span<const std::byte> source, const Tensor& target) {
  CHECK_EQ(static_cast<int64_t>(source.size()), target.bytes()) << target.shape().ToString();
  target.buffer()->Rewritten();
  // memcpy may not be given the null pointer of an empty span, whatever the size.
  if (!source.empty()) std::memcpy(target.raw(), source.data(), source.size());
}

void CpuBackend::CopyToHost(const Tensor& source, std::span<std::byte> target) {
  CHECK_EQ(static_cast<int64_t>(target.size()), source.bytes()) << source.shape().ToString();
  if (!target.empty()) std::memcpy(target.data(), source.raw(), target.size());
}

void CpuBackend::Convert(const Tensor& source, const Tensor& target) {
  CHECK_EQ(source.elements(), target.elements()) << "convert";
  target.buffer()->Rewritten();
  const bool narrows = IsBfloat16(target);
  if (source.dtype() == target.dtype()) {
    const int64_t each = DTypeSize(source.dtype());
    ForEachBlock(source.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
      std::memcpy(target.raw() + first * each, source.raw() + first * each,
                  static_cast<size_t>(count * each));
    });
    return;
  }
  ForEachBlock(source.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    if (narrows) {
      Narrow(source.data<float>() + first, target.data<Bfloat16>() + first, count);
    } else {
      Widen(source.data<Bfloat16>() + first, target.data<float>() + first, count);
    }
  });
}

}  // namespace stagecoach::cpu

namespace stagecoach {

std::unique_ptr<Backend> MakeCpuBackend(const BackendOptions& options) {
  return std::make_unique<cpu::CpuBackend>(options);
}

}  // namespace stagecoach
