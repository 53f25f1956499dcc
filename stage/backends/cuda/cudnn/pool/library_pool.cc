#include "stage/backends/cuda/cudnn/pool/library_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/errors/check.h"
#include "base/errors/status.h"

namespace stagecoach::cudnn {
namespace {

// cuDNN would read and write beyond what is too small.
void CheckTensors(const PoolProblem& problem, const AveragePoolArgs& args) {
  const PoolLayouts layouts = LayoutsOf(problem);
  CHECK_EQ(args.image.elements(), layouts.image.elements()) << "average pool: image";
  CHECK_EQ(args.places.elements(), layouts.places.elements()) << "average pool: places";
  CHECK(args.image.dtype() == DType::kF32 || args.image.dtype() == DType::kBF16)
      << "average pool: types";
  CHECK(args.image.dtype() == args.places.dtype()) << "average pool: types";
}

}  // namespace

// A graph, or why own kernels compute the problem.
struct LibraryPool::Plan {
  std::unique_ptr<PoolGraph> graph;
  std::string why;
  bool used = false;  // since TakeUsed
};

LibraryPool::LibraryPool(absl::StatusOr<std::unique_ptr<PoolGraphs>> graphs, Workspace fixed)
    : graphs_(std::move(graphs)), fixed_(fixed) {}

LibraryPool::~LibraryPool() = default;

std::string LibraryPool::fingerprint() const {
  return absl::StrCat("pools ", graphs_.ok() ? (*graphs_)->version() : "by own kernels");
}

std::vector<std::string> LibraryPool::TakeUsed() {
  std::vector<std::string> used;
  for (const auto& [problem, plan] : plans_) {
    if (!std::exchange(plan->used, false)) continue;
    used.push_back(plan->graph != nullptr
                       ? absl::StrCat("cuDNN average pool, engine ", plan->graph->engine())
                       : absl::StrCat("own pool kernels, as ", plan->why));
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

absl::StatusOr<LibraryPool::Plan> LibraryPool::MakePlan(const PoolProblem& problem) {
  Plan plan;
  plan.why = WhyOwnKernels(problem, (*graphs_)->offer());
  if (!plan.why.empty()) return plan;
  auto graph = (*graphs_)->Build(problem, fixed_.bytes);
  if (absl::IsUnimplemented(graph.status())) {
    // What follows is of engine after engine.
    const absl::string_view why = graph.status().message();
    plan.why = absl::StrCat("it is not supported: ", why.substr(0, why.find('\n')));
    return plan;
  }
  RETURN_IF_ERROR(graph.status());
  if ((*graph)->workspace_bytes() > fixed_.bytes) {
    plan.why = absl::StrCat("its plan takes ", (*graph)->workspace_bytes(),
                            " bytes of workspace, there are ", fixed_.bytes);
    return plan;
  }
  plan.graph = *std::move(graph);
  return plan;
}

absl::StatusOr<LibraryPool::Plan*> LibraryPool::FindPlan(const PoolProblem& problem) {
  auto found = plans_.find(problem);
  if (found == plans_.end()) {
    ASSIGN_OR_RETURN(Plan plan, MakePlan(problem));
    found = plans_.emplace(problem, std::make_unique<Plan>(std::move(plan))).first;
  }
  return found->second.get();
}

absl::StatusOr<bool> LibraryPool::Run(const AveragePoolArgs& args) {
  if (!graphs_.ok()) return false;
  const PoolProblem problem = ProblemOf(args);
  CheckTensors(problem, args);
  ASSIGN_OR_RETURN(Plan* const plan, FindPlan(problem));
  plan->used = true;
  if (plan->graph == nullptr) return false;
  RETURN_IF_ERROR(plan->graph->Run({args.image.raw(), args.places.raw()}, fixed_.data));
  return true;
}

}  // namespace stagecoach::cudnn
