#include "stage/backends/cuda/cudnn/convolution/library_convolution.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/errors/check.h"
#include "base/errors/status.h"

namespace stagecoach::cudnn {
namespace {

// cuDNN would read and write beyond what is too small.
void CheckTensors(const ConvolutionProblem& p, const ConvolutionArgs& args) {
  const ConvolutionLayouts layouts = LayoutsOf(p);
  CHECK_EQ(args.image.elements(), ElementsOf(layouts.image)) << "convolution: image";
  CHECK_EQ(args.weight.elements(), ElementsOf(layouts.weight)) << "convolution: weight";
  CHECK_EQ(args.places.elements(), ElementsOf(layouts.places)) << "convolution: places";
  CHECK(args.image.dtype() == p.dtype() && args.places.dtype() == p.dtype())
      << "convolution: types";
  CHECK(args.weight.dtype() == (p.accumulates() ? DType::kF32 : p.dtype())) << "convolution: types";
  if (!p.bias) return;
  CHECK_EQ(args.bias.elements(), p.out) << "convolution: bias";
  CHECK(args.bias.dtype() == p.dtype()) << "convolution: types";
}

}  // namespace

// A graph, or why own kernels compute the problem.
struct LibraryConvolution::Plan {
  std::unique_ptr<ConvolutionGraph> graph;
  ConvolutionRoom room;
  std::string why;
  bool used = false;  // since TakeUsed
};

LibraryConvolution::LibraryConvolution(absl::StatusOr<std::unique_ptr<ConvolutionGraphs>> graphs,
                                       Workspace fixed)
    : graphs_(std::move(graphs)), fixed_(fixed) {}

LibraryConvolution::~LibraryConvolution() = default;

std::string LibraryConvolution::fingerprint() const {
  return absl::StrCat("convolutions ", graphs_.ok() ? (*graphs_)->version() : "by own kernels");
}

std::vector<std::string> LibraryConvolution::TakeUsed() {
  std::vector<std::string> used;
  for (const auto& [problem, plan] : plans_) {
    if (!std::exchange(plan->used, false)) continue;
    used.push_back(plan->graph != nullptr
                       ? absl::StrCat("cuDNN convolution, engine ", plan->graph->engine())
                       : absl::StrCat("own convolution kernels, as ", plan->why));
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

absl::StatusOr<LibraryConvolution::Plan> LibraryConvolution::MakePlan(
    const ConvolutionProblem& problem) {
  Plan plan;
  plan.why = WhyOwnKernels(problem, (*graphs_)->offer(), fixed_.bytes);
  if (!plan.why.empty()) return plan;
  plan.room = CutWorkspace(problem, fixed_.bytes);
  auto graph = (*graphs_)->Build(ExecutionOf(problem, plan.room), plan.room.library_bytes);
  if (absl::IsUnimplemented(graph.status())) {
    // What follows is of engine after engine.
    const absl::string_view why = graph.status().message();
    plan.why = absl::StrCat("it is not supported: ", why.substr(0, why.find('\n')));
    return plan;
  }
  RETURN_IF_ERROR(graph.status());
  if ((*graph)->workspace_bytes() > plan.room.library_bytes) {
    plan.why = absl::StrCat("its plan takes ", (*graph)->workspace_bytes(),
                            " bytes of workspace, there are ", plan.room.library_bytes);
    return plan;
  }
  plan.graph = *std::move(graph);
  return plan;
}

absl::StatusOr<LibraryConvolution::Plan*> LibraryConvolution::FindPlan(
    const ConvolutionProblem& problem) {
  auto found = plans_.find(problem);
  if (found == plans_.end()) {
    ASSIGN_OR_RETURN(Plan plan, MakePlan(problem));
    found = plans_.emplace(problem, std::make_unique<Plan>(std::move(plan))).first;
  }
  return found->second.get();
}

absl::StatusOr<bool> LibraryConvolution::Run(const ConvolutionArgs& args,
                                             const AroundConvolution& around) {
  if (!graphs_.ok()) return false;
  const ConvolutionProblem problem = ProblemOf(args);
  CheckTensors(problem, args);
  ASSIGN_OR_RETURN(Plan* const plan, FindPlan(problem));
  plan->used = true;
  if (plan->graph == nullptr) return false;
  RETURN_IF_ERROR(RunPlan(args, around, problem, *plan));
  return true;
}

// The same parts of the workspace are used again and again: what is queued later runs later.
absl::Status LibraryConvolution::RunPlan(const ConvolutionArgs& args,
                                         const AroundConvolution& around,
                                         const ConvolutionProblem& problem, const Plan& plan) {
  ConvolutionPointers pointers = {.image = args.image.raw(),
                                  .weight = args.weight.raw(),
                                  .places = args.places.raw(),
                                  .bias = problem.bias ? args.bias.raw() : nullptr};
  void* const library = At(plan.room.library);
  if (!problem.accumulates()) return plan.graph->Run(pointers, library);

  pointers.weight = At(0);
  const int64_t executions = problem.samples / plan.room.samples;
  const int64_t pixels = args.image.elements() / executions;
  const int64_t places = args.places.elements() / executions;
  for (int64_t i = 0; i < executions; ++i) {
    if (problem.widens()) {
      pointers.image = At(plan.room.image);
      pointers.places = At(plan.room.places);
      around.widen(args.image, i * pixels, static_cast<float*>(pointers.image), pixels);
      around.widen(args.places, i * places, static_cast<float*>(pointers.places), places);
    }
    RETURN_IF_ERROR(plan.graph->Run(pointers, library));
    around.add(static_cast<const float*>(pointers.weight), args.weight);
  }
  return absl::OkStatus();
}

}  // namespace stagecoach::cudnn
