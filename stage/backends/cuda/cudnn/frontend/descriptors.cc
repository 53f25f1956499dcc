#include "stage/backends/cuda/cudnn/frontend/descriptors.h"

#include <algorithm>

#include "base/errors/status.h"

namespace stagecoach::cudnn {
namespace {

// Those that convolutions bar, and why: frontend_convolutions.cc.
constexpr cudnnBackendBehaviorNote_t kBarredBehaviors[] = {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION,
                                                           CUDNN_BEHAVIOR_NOTE_CUBLASLT_DEPENDENCY};

template <typename Notes, typename Others>
bool HaveOneOf(const Notes& notes, const Others& others) {
  return std::any_of(notes.begin(), notes.end(), [&](const auto note) {
    return std::find(std::begin(others), std::end(others), note) != std::end(others);
  });
}

// The configurations that cuDNN's heuristics name, best first; none where they know none.
absl::StatusOr<std::vector<Descriptor>> Configurations(const Descriptor& graph,
                                                       cudnnBackendHeurMode_t mode,
                                                       const PlanningFor& where,
                                                       const std::string& version) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (where.properties != nullptr) {
    heuristics.Set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                   where.properties);
  }
  std::vector<Descriptor> found;
  const absl::Status status = heuristics.Finish(version, "looking for an engine");
  if (absl::IsUnimplemented(status)) return found;
  RETURN_IF_ERROR(status);
  int64_t count = 0;
  fe::detail::get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr);
  std::vector<cudnnBackendDescriptor_t> places;
  for (int64_t i = 0; i < count; ++i) {
    found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    places.push_back(found.back().get());
  }
  int64_t filled = 0;  // fewer, where some cannot be had on this machine
  if (fe::detail::get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &filled,
                                places.data()) != CUDNN_STATUS_SUCCESS) {
    filled = 0;
  }
  while (static_cast<int64_t>(found.size()) > filled) found.pop_back();
  return found;
}

struct Engine {
  int64_t number = -1;
  bool barred = true;
};
Engine EngineOf(const Descriptor& configuration,
                const std::vector<cudnnBackendNumericalNote_t>& barred) {
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t place = engine.get();
  int64_t count = 0;
  if (fe::detail::get_attribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                &place) != CUDNN_STATUS_SUCCESS) {
    return {};
  }
  const auto numbers = engine.Get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1);
  const auto notes = engine.Get<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const auto behaviors = engine.Get<cudnnBackendBehaviorNote_t>(
      CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  // One that says nothing of itself is not taken.
  if (!numbers.has_value() || numbers->empty() || !notes.has_value() || !behaviors.has_value()) {
    return {};
  }
  return {numbers->front(), HaveOneOf(*notes, barred) || HaveOneOf(*behaviors, kBarredBehaviors)};
}

absl::StatusOr<Descriptor> Plan(const Descriptor& configuration, const PlanningFor& where,
                                const std::string& version) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (where.handle != nullptr) {
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, where.handle);
  } else {
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, where.properties);
  }
  RETURN_IF_ERROR(plan.Finish(version, "building a plan"));
  return plan;
}

}  // namespace

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  Note(fe::detail::create_descriptor(type, &descriptor_));
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, nullptr)),
      first_(other.first_),
      message_(std::move(other.message_)) {}

Descriptor::~Descriptor() {
  if (descriptor_ != nullptr) fe::detail::destroy_descriptor(descriptor_);
}

void Descriptor::Note(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS || !ok()) return;
  first_ = status;
  message_ = LastMessage(status);
}

void Descriptor::Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     int64_t count, const void* values) {
  if (ok()) Note(fe::detail::set_attribute(descriptor_, name, type, count, values));
}

absl::Status Descriptor::Finish(const std::string& version, const char* step) {
  if (ok()) Note(fe::detail::finalize(descriptor_));
  return LibraryStatus(first_, message_, version, step);
}

absl::StatusOr<FoundPlan> FindPlan(std::vector<Descriptor> parts, const PlanningFor& where,
                                   const std::vector<cudnnBackendNumericalNote_t>& barred,
                                   int64_t workspace_bytes, const std::string& version) {
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (where.handle != nullptr) {
    graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, where.handle);
  }
  graph.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, parts.back());
  RETURN_IF_ERROR(graph.Finish(version, "building the graph"));

  absl::Status first;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    ASSIGN_OR_RETURN(std::vector<Descriptor> configurations,
                     Configurations(graph, mode, where, version));
    for (Descriptor& configuration : configurations) {
      const Engine engine = EngineOf(configuration, barred);
      if (engine.barred) continue;
      absl::StatusOr<Descriptor> plan = Plan(configuration, where, version);
      // A plan that fails for what this machine lacks is no reason to take the next, as another
      // machine with such a card would take the first, with other bits.
      if (!plan.ok() && !absl::IsUnimplemented(plan.status())) return plan.status();
      if (!plan.ok()) {
        first.Update(plan.status());
        continue;
      }
      const auto bytes =
          plan->Get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1);
      if (!bytes.has_value() || bytes->empty() || bytes->front() > workspace_bytes) continue;
      parts.push_back(std::move(graph));
      parts.push_back(std::move(configuration));
      parts.push_back(*std::move(plan));
      return FoundPlan{std::move(parts), bytes->front(), engine.number};
    }
  }
  std::string why = absl::StrCat(version, " has no engine that may be taken");
  if (!first.ok()) absl::StrAppend(&why, "; of the first: ", first.message());
  return absl::UnimplementedError(why);
}

}  // namespace stagecoach::cudnn
