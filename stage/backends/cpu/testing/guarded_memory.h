// GuardedMemory: memory that ends where a page without access begins, or begins where one ends. It
// reports a call's accesses outside.
// Threads: one; the handler of SIGSEGV is the process's.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_TESTING_GUARDED_MEMORY_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_TESTING_GUARDED_MEMORY_H_

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"

namespace stagecoach::cpu {

enum class GuardedSide { kBehind, kBefore };

class GuardedMemory {
 public:
  GuardedMemory(std::string name, int64_t bytes, GuardedSide side)
      : name_(std::move(name)), bytes_(bytes) {
    const int64_t inside = std::max<int64_t>(kPage, (bytes + kPage - 1) / kPage * kPage);
    mapped_ = inside + 2 * kGuard;
    void* const base =
        mmap(nullptr, static_cast<size_t>(mapped_), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(base != MAP_FAILED) << "no memory for " << name_;
    base_ = static_cast<std::byte*>(base);
    CHECK_EQ(mprotect(base_ + kGuard, static_cast<size_t>(inside), PROT_READ | PROT_WRITE), 0);
    data_ = base_ + kGuard + (side == GuardedSide::kBehind ? inside - bytes : 0);
    All().push_back(this);
  }
  ~GuardedMemory() {
    std::erase(All(), this);
    munmap(base_, static_cast<size_t>(mapped_));
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  template <typename T = float>
  T* data() const {
    return reinterpret_cast<T*>(data_);
  }

  // Runs `call`. Returns empty, or the place outside of guarded memory that the call touched; then
  // objects that the call made are not destroyed.
  static std::string Outside(absl::FunctionRef<void()> call) {
    struct sigaction action = {}, before = {};
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      Fault() = info->si_addr;
      siglongjmp(Jump(), 1);
    };
    action.sa_flags = SA_SIGINFO;
    CHECK_EQ(sigaction(SIGSEGV, &action, &before), 0);
    std::string outside;
    if (sigsetjmp(Jump(), 1) == 0) {
      call();
    } else {
      outside = NameOf(static_cast<const std::byte*>(Fault()));
    }
    CHECK_EQ(sigaction(SIGSEGV, &before, nullptr), 0);
    return outside;
  }

 private:
  static constexpr int64_t kPage = 4096;
  static constexpr int64_t kGuard = int64_t{1} << 22;  // more than any known write went astray

  static std::vector<const GuardedMemory*>& All() {
    static std::vector<const GuardedMemory*> all;
    return all;
  }
  static sigjmp_buf& Jump() {
    static sigjmp_buf jump;
    return jump;
  }
  static void*& Fault() {
    static void* fault = nullptr;
    return fault;
  }
  static std::string NameOf(const std::byte* at) {
    for (const GuardedMemory* memory : All()) {
      if (at < memory->base_ || at >= memory->base_ + memory->mapped_) continue;
      const int64_t behind = at - memory->data_ - memory->bytes_;
      return behind >= 0
                 ? absl::StrCat("touches byte ", behind, " behind the ", memory->bytes_, " of its ",
                                memory->name_)
                 : absl::StrCat("touches byte ", memory->data_ - at, " before its ", memory->name_);
    }
    return "touches memory that is none of its buffers'";
  }

  const std::string name_;
  const int64_t bytes_;
  int64_t mapped_ = 0;
  std::byte *base_ = nullptr, *data_ = nullptr;
};

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_TESTING_GUARDED_MEMORY_H_
