// ObjectiveKind: a goal that a network can be trained for. One object a kind, without state; its
// file is in network/objectives, and the one list of them in objective_kinds.cc.
// Ownership: the list owns all kinds for the life of the process.
// Threads:   any.
// Errors:    INVALID_ARGUMENT with the path in the job, the value and the remedy; FindObjectiveKind
//            answers NOT_FOUND with the nearest known name.
#ifndef STAGECOACH_NETWORK_OBJECTIVE_KIND_H_
#define STAGECOACH_NETWORK_OBJECTIVE_KIND_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "network/network.h"
#include "operations/attributes.h"
#include "operations/kind_spec.h"

namespace stagecoach {

class ObjectiveKind {
 public:
  virtual ~ObjectiveKind() = default;
  virtual std::string_view name() const = 0;
  virtual Attributes Defaults() const = 0;
  // The element of the targets, with which it compares the output.
  virtual Element TargetElement() const = 0;
  // Makes the loss with attributes and ignored targets; `path`: of the kind in the job.
  virtual absl::StatusOr<Objective> Build(const Attributes& fields,
                                          const std::string& path) const = 0;
};

const std::vector<const ObjectiveKind*>& AllObjectiveKinds();  // by name
absl::StatusOr<const ObjectiveKind*> FindObjectiveKind(std::string_view name);

// Sets the objective of a network. The network names targets for its output. If they are not of the
// wanted kind, another input of that kind takes their place. So an autoencoder's output is compared
// with the images that went in. Without a kind it is cross-entropy. Accuracy is counted if a sample
// or a pixel has a target, and not of text. The auxiliary output stays the network's.
absl::Status SetObjective(const KindSpec& spec, const std::string& path, Network* network);

// Fields of an objective, for errors.
struct ObjectivePaths {
  explicit ObjectivePaths(const std::string& kind)  // of the kind in the job
      : ignored(kind + ".ignore_index"), class_weights(kind + ".class_weights") {}
  ObjectivePaths() = default;  // in a message
  std::string ignored = "objective.ignored", class_weights = "objective.class_weights";
};

// Completes an objective that has its loss, output, targets and weights: fills in the sums, and
// checks that it fits this network.
absl::Status FinishObjective(const std::string& path, const ObjectivePaths& paths,
                             Network* network);

// The same network with another input of the data source, "weights": one number a sample, the
// weight of its targets. Wires count from the inputs on, so all others move up by one. `path`: of
// the field that gives them.
absl::StatusOr<Network> WithSampleWeights(Network network, const std::string& path);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_OBJECTIVE_KIND_H_
