// Helpers of files that call oneDNN: its engine, a stream, our memory as oneDNN's objects.
// Threads: any; each thread has its own stream.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_ONEDNN_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_ONEDNN_H_

#include <oneapi/dnnl/dnnl.hpp>

namespace stagecoach::cpu {

inline constexpr auto kF32 = dnnl::memory::data_type::f32;

inline const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// A CPU stream holds no state between calls, but is not promised to be shareable.
inline dnnl::stream& Stream() {
  thread_local dnnl::stream stream(Engine());
  return stream;
}

inline dnnl::memory View(const dnnl::memory::desc& desc, const void* data) {
  return dnnl::memory(desc, Engine(), const_cast<void*>(data));
}

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_ONEDNN_H_
