// Every operation's cases for operations.py: operands, outputs, and gradients by random gradients
// of the outputs.
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "stage/backends/conformance/case_table.h"
#include "tests/oracle/oracle.h"

namespace stagecoach {
namespace {

using conformance::CaseCalls;
using conformance::CaseTable;

class CaseRecord {
 public:
  CaseRecord(const CaseCalls& calls, Backend& backend, Recorder* recorder)
      : calls_(calls),
        name_("case/" + std::string(calls.of.operation->name()) + "/" + calls.of.call.name),
        backend_(backend),
        bench_(backend),
        table_(bench_, calls),
        recorder_(recorder) {}

  void Record() {
    for (const ValueId id : AddedTo()) {
      const auto count = static_cast<size_t>(TypeElements(calls_.type(id), samples()));
      table_.Set(id, std::vector<float>(count, 0.0f));
    }
    table_.SetGiven();
    Save("input", calls_.operands);
    Save("add", calls_.forward[0].adds);
    for (const Call& call : calls_.forward) table_.Run(call);
    for (const Call& call : calls_.backward) table_.Run(call);
    Save("state", States());
    Save("added", calls_.forward[0].adds);
    Save("output", calls_.forward[0].outputs);
    Save("d_output", calls_.output_gradients);
    Save("d_input", calls_.operand_gradients);
    recorder_->Note(name_, FormatAttributes(calls_.of.call.attributes));
    recorder_->Note(name_ + "/states", absl::StrJoin(StateOperands(), " "));
    recorder_->Note(name_ + "/outputs", absl::StrJoin(calls_.of.call.outputs, " "));
  }

 private:
  int64_t samples() const { return calls_.of.call.samples; }
  // Gradients and accumulators: not the states, which are operands.
  std::vector<ValueId> AddedTo() const {
    std::vector<ValueId> ids;
    for (const Call& call : calls_.backward) {
      for (const ValueId id : call.adds) {
        if (absl::c_count(calls_.operands, id) == 0) ids.push_back(id);
      }
    }
    return ids;
  }
  std::vector<size_t> StateOperands() const {
    std::vector<size_t> operands;
    for (size_t i = 0; i < calls_.operands.size(); ++i) {
      if (calls_.of.call.inputs[i].state) operands.push_back(i);
    }
    return operands;
  }
  std::vector<ValueId> States() const {
    std::vector<ValueId> ids;
    for (const size_t i : StateOperands()) ids.push_back(calls_.operands[i]);
    return ids;
  }
  // With an extent for the samples where each has its own.
  void Save(const char* what, const std::vector<ValueId>& ids) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (!ids[i].valid()) continue;
      const ValueType& type = calls_.type(ids[i]);
      std::vector<int64_t> extents = type.shape.extents();
      if (type.leading == Leading::kSamples) extents.insert(extents.begin(), samples());
      recorder_->Add(absl::StrCat(name_, "/", what, i), backend_,
                     table_.at(ids[i]).Reshaped(Shape(std::move(extents))));
    }
  }

  const CaseCalls& calls_;
  const std::string name_;
  Backend& backend_;
  conformance::Bench bench_;
  CaseTable table_;
  Recorder* const recorder_;
};

}  // namespace

absl::Status RecordOperations(Backend& backend, Recorder* recorder) {
  for (const OperationCase& of : AllCases()) {
    const CaseCalls calls = conformance::CallsOfCase(of);
    const std::string missing = conformance::MissingKernel(backend, calls);
    if (!missing.empty()) {
      return absl::UnimplementedError(absl::StrCat("case ", of.name(),
                                                   ": the back end has no kernel for ", missing,
                                                   ", so that its numbers cannot be compared"));
    }
    CaseRecord(calls, backend, recorder).Record();
  }
  return backend.Synchronize();
}

}  // namespace stagecoach
