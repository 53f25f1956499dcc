// Operation: an operation that networks are made of. One object an operation, without state. It
// says what a call takes and gives, what the call costs, and how its gradient is computed. Kernels
// live with the back ends.
// Ownership: the catalogue owns all operations for the life of the process.
// Threads:   any.
// Units and shapes: FLOPs of a micro-batch, a multiply-add is two.
// Errors:    CheckAttributes and Types answer INVALID_ARGUMENT: what is wrong and what would be
//            right. Everything else may only be asked about calls that passed both.
#ifndef STAGECOACH_OPERATIONS_OPERATION_H_
#define STAGECOACH_OPERATIONS_OPERATION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/errors/check.h"
#include "operations/attributes.h"
#include "operations/call_case.h"
#include "operations/value_type.h"

namespace stagecoach {

// One use of an operation. `adds`: buffers that the call adds to or changes. It adds to gradients
// of parameters, which are summed over micro-batches. It changes accumulators and states. These
// buffers are neither inputs nor outputs.
struct Call {
  std::string operation;
  Attributes attributes;
  std::vector<ValueId> inputs, outputs, adds;
  friend bool operator==(const Call&, const Call&) = default;
};

struct CallTypes {
  std::vector<ValueType> inputs, outputs, adds;
};

struct Cost {
  int64_t products = 0;  // FLOPs of matrix products that the model needs: what MFU counts
  int64_t flops = 0;     // all; element-wise passes by a nominal number per element
};

// GradientWriter: a call of the forward as the operation's gradient rule sees it. The rule writes
// to it.
class GradientWriter {
 public:
  virtual ~GradientWriter() = default;
  virtual int inputs() const = 0;
  virtual ValueId input(int i) const = 0;
  virtual const ValueType& input_type(int i) const = 0;
  virtual ValueId output(int i) const = 0;
  // Does anyone want the gradient of this input?
  virtual bool Wants(int input) const = 0;
  // The whole gradient of an output; invalid: nothing depends on that output.
  virtual ValueId OutputGradient(int i) const = 0;
  // A call of the backward; its outputs.
  virtual std::vector<ValueId> Emit(std::string_view operation, Attributes attributes,
                                    std::vector<ValueId> inputs) = 0;
  // A call that adds to the gradients of these inputs, which are parameters.
  virtual void EmitAdding(std::string_view operation, Attributes attributes,
                          std::vector<ValueId> inputs, const std::vector<int>& parameters) = 0;
  // One share of the gradient of an input that is no parameter.
  virtual void Contribute(int input, ValueId gradient) = 0;
  // The call stands where it has no gradient. Nothing that is written after it counts.
  virtual void Refuse(std::string_view why) = 0;
};

// UpdateWriter: a call of the forward as the operation's update rule sees it. The rule writes calls
// that change the states among the call's inputs.
class UpdateWriter {
 public:
  virtual ~UpdateWriter() = default;
  virtual const ValueType& input_type(int i) const = 0;
  virtual ValueId output(int i) const = 0;
  // A buffer that is zero when a step begins.
  virtual ValueId Accumulator(Element element, Shape shape) = 0;
  // A call that folds what one micro-batch gave into accumulators: once for each, in ascending
  // order.
  virtual void EmitFold(std::string_view operation, Attributes attributes,
                        std::vector<ValueId> inputs, const std::vector<ValueId>& accumulators) = 0;
  // A call that changes these inputs, which are states, when the step is applied.
  virtual void EmitCommit(std::string_view operation, Attributes attributes,
                          std::vector<ValueId> accumulators, const std::vector<int>& states) = 0;
};

// The form of a call in an evaluation.
struct EvaluationForm {
  bool identity = false;  // its output is its first input
  Attributes attributes;
  // Another operation of the same inputs that gives output 0 alone; empty: the same one.
  std::string operation = {};
};

// The two calls that a joint operation (operations/joint.h) stands for. The first has all its
// inputs and outputs and its attributes. The second has no attributes. It reads the inputs
// `weight_inputs` and adds to gradients.
struct JointParts {
  std::string_view input_gradient, weight_gradient;
  std::vector<int> weight_inputs;
};

class Operation {
 public:
  virtual ~Operation() = default;
  virtual std::string_view name() const = 0;
  // Raised where the same call means something else than before. Coordinator and stages must agree.
  virtual int version() const { return 1; }
  virtual absl::Status CheckAttributes(const Attributes& attributes) const = 0;
  // Types of the outputs. `adds` are the types of what the call adds to.
  virtual absl::StatusOr<std::vector<ValueType>> Types(const Attributes& attributes,
                                                       std::span<const ValueType> inputs,
                                                       std::span<const ValueType> adds) const = 0;
  virtual Cost CostOf(const Attributes& attributes, const CallTypes& types,
                      int64_t samples) const = 0;
  // Writes the calls that compute the gradients of the wanted inputs. Operations of the backward
  // refuse.
  virtual void Gradient(const Attributes& attributes, GradientWriter& writer) const;
  // Writes the calls that change states, if the call has any.
  virtual void Update(const Attributes&, UpdateWriter&) const {}
  virtual EvaluationForm Evaluation(const Attributes& attributes) const {
    return {.identity = false, .attributes = attributes};
  }
  // Samples that a micro-batch must have in training.
  virtual int64_t LeastSamples(const Attributes&, const CallTypes&) const { return 1; }
  // Rows of the table that ids are looked up in, if there is one: they have to be below.
  virtual std::optional<int64_t> RowsOfTable(const Attributes&, const CallTypes&) const {
    return std::nullopt;
  }
  // Random numbers that a call draws from its stream for one sample.
  virtual int64_t Drawn(const Attributes&, const CallTypes&) const { return 0; }
  // The same call with one more input at the end. It is added to output 0 before its one rounding.
  // nullopt: there is no such form.
  virtual std::optional<Attributes> WithSum(const Attributes&) const { return std::nullopt; }
  // Null: it is one operation.
  virtual const JointParts* Parts() const { return nullptr; }
  // Inputs that output 0 may take the place of, if nobody reads them afterwards; the best first.
  virtual std::vector<int> MayOverwrite(const Attributes&) const { return {}; }
  // The names of the sums that a loss gives, in their order (operations/losses/loss_types.h):
  // "loss", "terms", then measures. Measures are sums over the terms as well. Counts class by class
  // come behind them, without names. No other operation has sums.
  virtual std::vector<std::string> Sums(const Attributes&) const { return {}; }
  // Cases that its tests are made from. Operations of the backward are tested with those that they
  // are the gradient of. They name calls that no gradient rule writes.
  virtual std::vector<CallCase> Cases() const { return {}; }
};

// An operation with a struct of attributes: the same questions, with the struct.
template <typename Struct>
class OperationOf : public Operation {
 public:
  absl::Status CheckAttributes(const Attributes& attributes) const final {
    return FromAttributes<Struct>(attributes).status();
  }
  absl::StatusOr<std::vector<ValueType>> Types(const Attributes& attributes,
                                               std::span<const ValueType> inputs,
                                               std::span<const ValueType> adds) const final {
    const absl::StatusOr<Struct> values = FromAttributes<Struct>(attributes);
    if (!values.ok()) return values.status();
    return TypesOf(*values, inputs, adds);
  }
  Cost CostOf(const Attributes& attributes, const CallTypes& types, int64_t samples) const final {
    return CostOfCall(Get(attributes), types, samples);
  }
  void Gradient(const Attributes& attributes, GradientWriter& writer) const final {
    WriteGradient(Get(attributes), writer);
  }

 protected:
  static Struct Get(const Attributes& attributes) {
    absl::StatusOr<Struct> values = FromAttributes<Struct>(attributes);
    CHECK_OK(values.status());
    return *values;
  }

 private:
  virtual absl::StatusOr<std::vector<ValueType>> TypesOf(const Struct& attributes,
                                                         std::span<const ValueType> inputs,
                                                         std::span<const ValueType> adds) const = 0;
  virtual Cost CostOfCall(const Struct& attributes, const CallTypes& types,
                          int64_t samples) const = 0;
  virtual void WriteGradient(const Struct&, GradientWriter& writer) const {
    writer.Refuse("has no gradient");
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_OPERATION_H_
