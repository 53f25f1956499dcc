// Rows made from the cases of the operations: every call of a case's forward and backward, also in
// the memory of what it may overwrite, and with a sum where it has that form. Each call reads what
// the reference gives for the calls before it, so that one call is compared and not what added up
// on the way.
#include <optional>

#include "absl/strings/str_cat.h"
#include "operations/catalogue.h"
#include "stage/backends/conformance/case_table.h"

namespace stagecoach::conformance {
namespace {

constexpr uint32_t kTrunkStream = 1000;

class CaseRow {
 public:
  CaseRow(Bench& bench, const CaseCalls& calls, CaseTable& truth)
      : bench_(bench), calls_(calls), truth_(truth), table_(bench, calls) {}

  Outputs Run() {
    for (const Call& call : calls_.All()) RunCall(call);
    for (const Call& call : calls_.joint) RunCall(call);
    return std::move(outputs_);
  }

 private:
  void RunCall(const Call& call) {
    const CallTypes types = calls_.TypesOf(call);
    for (const ValueId id : call.inputs) table_.Set(id, truth_.Values(id));
    for (const ValueId id : call.adds) table_.Set(id, FillOf(calls_, id));
    table_.Run(call);
    Note(call.operation, table_.at(call.outputs));
    Note(call.operation + " adding", table_.at(call.adds));
    InPlace(call, types);
    WithSum(call, types);
  }

  void Note(const std::string& what, const Tensors& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      outputs_.push_back(bench_.Read(absl::StrCat(what, " ", i), tensors[i]));
    }
  }

  void InPlace(const Call& call, const CallTypes& types) {
    for (const int i : OperationNamed(call.operation).MayOverwrite(call.attributes)) {
      Tensors inputs = table_.at(call.inputs);
      Tensor& overwritten = inputs[static_cast<size_t>(i)];
      overwritten = table_.Make(types.inputs[static_cast<size_t>(i)], table_.Read(overwritten));
      Note(absl::StrCat(call.operation, " in the place of ", i),
           table_.RunOn(call, types, inputs, overwritten));
    }
  }

  void WithSum(Call call, CallTypes types) {
    const std::optional<Attributes> sum = OperationNamed(call.operation).WithSum(call.attributes);
    if (!sum.has_value()) return;
    call.attributes = *sum;
    types.inputs.push_back(types.outputs[0]);
    Tensors inputs = table_.at(call.inputs);
    inputs.push_back(table_.Make(
        types.outputs[0],
        FillNormal(TypeElements(types.outputs[0], calls_.of.call.samples), kTrunkStream)));
    Note(call.operation + " with a sum", table_.RunOn(call, types, inputs, Tensor()));
    if (types.inputs[0] != types.outputs[0]) return;
    inputs.back() = inputs[0];
    Note(call.operation + " with its own input", table_.RunOn(call, types, inputs, Tensor()));
  }

  Bench& bench_;
  const CaseCalls& calls_;
  CaseTable& truth_;
  CaseTable table_;
  Outputs outputs_;
};

Outputs RunCase(Bench& bench, const CaseCalls& calls) {
  const auto reference = MakeReferenceBackend(BackendOptions{});
  Bench exact(*reference,
              bench.elements() == Elements::kFloat32 ? Elements::kFloat32 : Elements::kRounded);
  CaseTable truth(exact, calls);
  truth.SetGiven();
  for (const Call& call : calls.All()) {
    truth.Run(call);
    truth.RoundOutputs(call);
  }
  return CaseRow(bench, calls, truth).Run();
}

}  // namespace

void AddCaseRows(std::vector<ConformanceRow>& rows) {
  for (const OperationCase& of : AllCases()) {
    const CaseCalls calls = CallsOfCase(of);
    ConformanceRow row{.name = "Case_" + of.name(),
                       .tolerance = of.call.tolerance,
                       .body = [calls](Bench& bench) { return RunCase(bench, calls); },
                       .bfloat16_tolerance = of.call.bfloat16_tolerance};
    row.missing = [calls](Backend& backend) {
      const auto reference = MakeReferenceBackend(BackendOptions{});
      const std::string truth = MissingKernel(*reference, calls);
      return truth.empty() ? MissingKernel(backend, calls) : truth;
    };
    rows.push_back(std::move(row));
  }
}

}  // namespace stagecoach::conformance
