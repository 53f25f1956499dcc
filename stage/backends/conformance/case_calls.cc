#include "stage/backends/conformance/case_calls.h"

#include <cmath>
#include <set>

#include "base/numbers/random.h"
#include "network/lists/case_testing.h"
#include "network/lists/lists.h"
#include "operations/catalogue.h"

namespace stagecoach::conformance {
namespace {

constexpr uint64_t kCaseSeed = 20;

std::vector<float> FillOperand(const CaseOperand& operand, int64_t count, uint32_t stream) {
  std::vector<float> values = FillNormal(count, stream);
  for (int64_t i = 0; i < count; ++i) {
    float& value = values[static_cast<size_t>(i)];
    const int64_t place = PermuteIndex(kCaseSeed, stream, count, i);
    switch (operand.fill) {
      case Fill::kNormal:
        break;
      case Fill::kShifted:
        value = 4.0f + 1.5f * value;
        break;
      case Fill::kPositive:
        value = std::abs(value) + 0.5f;
        break;
      case Fill::kSomeZero:
        value = i % 3 == 1 ? 0.0f : std::abs(value) + 0.5f;
        break;
      case Fill::kDistinct:
        value = static_cast<float>(0.03 * (static_cast<double>(place - count / 2) + 0.5));
        break;
      case Fill::kIds:
        value = static_cast<float>(RandomBits({.seed = kCaseSeed, .operation = stream}, i) %
                                   static_cast<uint32_t>(operand.below));
        break;
      case Fill::kAnyIds:
        value = static_cast<float>(RandomBits({.seed = kCaseSeed, .operation = stream}, i) %
                                   static_cast<uint32_t>(operand.below + 2)) -
                2.0f;
        break;
      case Fill::kPlaces:
        value = static_cast<float>(PermuteIndex(kCaseSeed, stream, operand.below + 2, i)) - 1.0f;
        break;
      case Fill::kTied:
        value =
            static_cast<float>(RandomBits({.seed = kCaseSeed, .operation = stream}, i) % 3) - 1.0f;
        break;
      case Fill::kDiverged:
        if (place % 5 == 0) value = NAN;
        break;
    }
  }
  return values;
}

// The graph's ids are those of the lists.
std::vector<ValueId> OperandsOf(const OperationCase& of, const LayerGraph& graph) {
  std::vector<ValueId> operands;
  size_t inputs = 0, parameters = 0, states = 0;
  for (const CaseOperand& operand : of.call.inputs) {
    if (operand.state) {
      operands.push_back(graph.states[states++]);
    } else {
      operands.push_back(operand.type.leading == Leading::kOne ? graph.parameters[parameters++]
                                                               : graph.inputs[inputs++]);
    }
  }
  return operands;
}

void AddBackward(const LayerGraph& graph, CaseCalls* calls) {
  const LayerLists lists = Differentiate(graph);
  calls->types.clear();
  for (const Value& value : lists.values) calls->types.push_back(value.type);
  for (const CallList* list : {&lists.input_gradient, &lists.weight_gradient, &lists.commit}) {
    for (const ListedCall& listed : list->calls) calls->backward.push_back(listed.call);
  }
  for (const ListedCall& listed : lists.backward.calls) {
    if (OperationNamed(listed.call.operation).Parts() == nullptr) continue;
    calls->joint.push_back(listed.call);
  }
  calls->output_gradients = lists.output_gradients;
  size_t inputs = 0, parameters = 0;
  for (const CaseOperand& operand : calls->of.call.inputs) {
    if (operand.state) {
      calls->operand_gradients.emplace_back();
      continue;
    }
    calls->operand_gradients.push_back(operand.type.leading == Leading::kOne
                                           ? lists.parameter_gradients[parameters++]
                                           : lists.input_gradients[inputs++]);
  }
}

// No layer's lists: buffers that a call changes are no values of a graph.
CaseCalls OneCallOf(const OperationCase& of) {
  CaseCalls calls{.of = of};
  const auto values = [&](const std::vector<ValueType>& types) {
    std::vector<ValueId> ids;
    for (const ValueType& type : types) {
      ids.emplace_back(static_cast<int>(calls.types.size()));
      calls.types.push_back(type);
    }
    return ids;
  };
  const std::vector<ValueType> inputs = stagecoach::TypesOf(of.call.inputs);
  const std::vector<ValueType> adds = stagecoach::TypesOf(of.call.adds);
  Call call{.operation = std::string(of.operation->name()), .attributes = of.call.attributes};
  call.inputs = values(inputs);
  call.outputs = values(*of.operation->Types(of.call.attributes, inputs, adds));
  call.adds = values(adds);
  calls.operands = call.inputs;
  for (const int i : of.call.outputs) {
    calls.outputs.push_back(call.outputs[static_cast<size_t>(i)]);
  }
  calls.forward = {std::move(call)};
  return calls;
}

}  // namespace

CallTypes CaseCalls::TypesOf(const Call& call) const {
  CallTypes made;
  for (const ValueId id : call.inputs) made.inputs.push_back(type(id));
  for (const ValueId id : call.outputs) made.outputs.push_back(type(id));
  for (const ValueId id : call.adds) made.adds.push_back(type(id));
  return made;
}

std::vector<Call> CaseCalls::All() const {
  std::vector<Call> all = forward;
  all.insert(all.end(), backward.begin(), backward.end());
  return all;
}

CaseCalls CallsOfCase(const OperationCase& of) {
  if (!of.call.differentiable) return OneCallOf(of);
  const LayerGraph graph = GraphOfCase(of);
  CaseCalls calls{.of = of, .operands = OperandsOf(of, graph), .outputs = graph.outputs};
  for (const Value& value : graph.values) calls.types.push_back(value.type);
  calls.forward = graph.calls;
  AddBackward(graph, &calls);
  return calls;
}

std::string MissingKernel(Backend& backend, const CaseCalls& calls) {
  std::vector<Call> all = calls.All();
  all.insert(all.end(), calls.joint.begin(), calls.joint.end());
  for (const Call& call : all) {
    if (backend.Prepare(call, calls.TypesOf(call), DType::kF32).ok()) continue;
    return call.operation;
  }
  return "";
}

std::vector<std::string> MissingKernels(Backend& backend) {
  std::set<std::string> missing;
  for (const OperationCase& of : AllCases()) {
    const std::string operation = MissingKernel(backend, CallsOfCase(of));
    if (!operation.empty()) missing.insert(operation);
  }
  return {missing.begin(), missing.end()};
}

std::vector<float> FillNormal(int64_t count, uint32_t stream) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] = RandomNormal({.seed = kCaseSeed, .operation = stream}, i);
  }
  return values;
}

std::vector<float> FillOf(const CaseCalls& calls, ValueId id) {
  const int64_t count = TypeElements(calls.type(id), calls.of.call.samples);
  const auto stream = static_cast<uint32_t>(id.value);
  for (size_t i = 0; i < calls.operands.size(); ++i) {
    if (calls.operands[i] == id) return FillOperand(calls.of.call.inputs[i], count, stream);
  }
  for (size_t i = 0; i < calls.of.call.adds.size(); ++i) {
    if (calls.forward[0].adds[i] == id) return FillOperand(calls.of.call.adds[i], count, stream);
  }
  return FillNormal(count, stream);
}

}  // namespace stagecoach::conformance
