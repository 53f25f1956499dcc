// Tests of oneDNN on each instruction set of the machine. Each has a process of its own, since the
// set must be chosen before oneDNN's first call.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_TESTING_INSTRUCTION_SETS_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_TESTING_INSTRUCTION_SETS_H_

#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

#include "gtest/gtest.h"
#include "stage/backends/cpu/primitives/onednn.h"

namespace stagecoach::cpu {

struct Instructions {
  dnnl::cpu_isa set;
  const char* name;
};

// The child of a death test. It exits with 0 if the machine lacks the set or `passes` is true, with
// 1 if it is false, and with 2 if oneDNN cannot choose the set.
inline void TryOn(Instructions instructions, const std::function<bool()>& passes) {
  if (dnnl::set_max_cpu_isa(instructions.set) != dnnl::status::success) std::exit(2);
  if (dnnl::get_effective_cpu_isa() != instructions.set) {
    std::cerr << "no such instructions here\n";
    std::exit(0);
  }
  std::exit(passes() ? 0 : 1);
}

class InstructionsDeathTest : public testing::TestWithParam<Instructions> {
 protected:
  InstructionsDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

inline auto AllInstructions() {
  return testing::Values(Instructions{dnnl::cpu_isa::sse41, "sse41"},
                         Instructions{dnnl::cpu_isa::avx, "avx"},
                         Instructions{dnnl::cpu_isa::avx2, "avx2"},
                         Instructions{dnnl::cpu_isa::avx512_core, "avx512_core"},
                         Instructions{dnnl::cpu_isa::avx512_core_bf16, "avx512_core_bf16"},
                         Instructions{dnnl::cpu_isa::avx512_core_amx, "avx512_core_amx"});
}

inline std::string NameOfSet(const testing::TestParamInfo<Instructions>& info) {
  return info.param.name;
}

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_TESTING_INSTRUCTION_SETS_H_
