// Tied parameters: one parameter that several layers use, as a language model's embedding and head
// may (Press and Wolf 2017, 1608.05859). The first layer that uses it owns it: its name, initial
// value and optimizer state. Each of the others has a gradient buffer of its own, even if one stage
// holds all of them. So the sum over the users, in the order of layers, has the same bits for every
// partition. Once a step the gradients go to the owner's stage and the values come back
// (docs/ARCHITECTURE.md, "Tied parameters").
// Ownership: plain values.
// Errors:    INVALID_ARGUMENT with the path in the job, both types and the remedy.
#ifndef STAGECOACH_NETWORK_PASSES_TIED_H_
#define STAGECOACH_NETWORK_PASSES_TIED_H_

#include <compare>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "network/network.h"

namespace stagecoach {

// Lets `parameter` use `owner`, both global names. `path`: of the request, in the job.
absl::Status TieParameter(const std::string& parameter, const std::string& owner,
                          const std::string& path, Network* network);

// A use of a parameter.
struct ParameterUse {
  int layer = 0;
  int index = 0;  // in NetworkLayer::parameters
  friend auto operator<=>(const ParameterUse&, const ParameterUse&) = default;
};
const ParameterSpec& SpecOf(const Network& network, const ParameterUse& use);
// Type of the value; its gradient is float32.
const ValueType& TypeOf(const Network& network, const ParameterUse& use);

struct TiedParameter {
  ParameterUse owner;
  std::vector<ParameterUse> users;  // layers behind the owner's, ascending
};
// Ascending by owner. Frozen ones too: these share their value and exchange nothing.
std::vector<TiedParameter> TiedParameters(const Network& network);

// Ties that a cell, layers [first, last), exchanges for trained parameters; ascending.
struct CellTies {
  // Before a step. Received: values of owners in front of the cell, if a user is in it or behind.
  // Sent: values of owners in it or in front, if a user is behind.
  std::vector<ParameterUse> received_values, sent_values;
  // After a step. Received: gradients of users behind the cell, if an owner is in it or in front.
  // Sent: gradients of users in it or behind, if an owner is in front.
  std::vector<ParameterUse> received_gradients, sent_gradients;
  std::vector<TiedParameter> owned;  // owners in it: their gradients are summed here
};
// Elements of the layer's own parameters: a tied one counts at its owner.
int64_t OwnElements(const NetworkLayer& layer);
// Bytes of messages with the values, or with the gradients, which are float32.
int64_t ValueBytes(const Network& network, const std::vector<ParameterUse>& of);
int64_t GradientBytes(const Network& network, const std::vector<ParameterUse>& of);
CellTies TiesOfCell(const Network& network, int first, int last);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_PASSES_TIED_H_
