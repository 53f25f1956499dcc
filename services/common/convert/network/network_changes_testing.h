// Networks' messages with random changes, for tests of their readers. STAGECOACH_SEEDS=20000: look
// for longer.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_NETWORK_NETWORK_CHANGES_TESTING_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_NETWORK_NETWORK_CHANGES_TESTING_H_

#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "google/protobuf/message.h"
#include "network/network_kinds.h"
#include "network/objective_kind.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/every_network_testing.h"
#include "services/common/convert/network/convert_network.h"

namespace stagecoach {

class NetworkChanger {
  using FieldDescriptor = google::protobuf::FieldDescriptor;
  using Message = google::protobuf::Message;
  using Reflection = google::protobuf::Reflection;

 public:
  explicit NetworkChanger(uint64_t seed) : random_(seed) {}

  void ChangeBytes(std::string* bytes) {
    for (int64_t i = 1 + Below(3); i > 0; --i) {
      const auto at = static_cast<size_t>(Below(static_cast<int64_t>(bytes->size())));
      switch (Below(4)) {
        case 0:
          (*bytes)[at] = static_cast<char>(Below(256));
          break;
        case 1:
          (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << Below(8)));
          break;
        case 2:
          bytes->erase(at, static_cast<size_t>(1 + Below(4)));
          break;
        default:
          bytes->insert(at, 1, static_cast<char>(Below(256)));
      }
    }
  }

  // Changes one field of one message, which a walk down the tree chooses.
  void ChangeField(Message* message) {
    const Reflection& reflection = *message->GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(*message, &fields);
    if (fields.empty() || Below(8) == 0) {
      const google::protobuf::Descriptor& all = *message->GetDescriptor();
      if (all.field_count() == 0) return;
      return ChangeAny(message, all.field(static_cast<int>(Below(all.field_count()))));
    }
    const auto* const field =
        fields[static_cast<size_t>(Below(static_cast<int64_t>(fields.size())))];
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || Below(12) == 0) {
      return ChangeAny(message, field);
    }
    if (!field->is_repeated()) return ChangeField(reflection.MutableMessage(message, field));
    const int place = static_cast<int>(Below(reflection.FieldSize(*message, field)));
    ChangeField(reflection.MutableRepeatedMessage(message, field, place));
  }

 private:
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  int64_t Number() {
    static const std::vector<int64_t> kEdges = {
        -1, int64_t{1} << 31, int64_t{1} << 62, -(int64_t{1} << 62), 1 << 20, 0};
    return Below(3) == 0 ? kEdges[static_cast<size_t>(Below(6))] : Below(20);
  }

  void ChangeAny(Message* message, const FieldDescriptor* field) {
    const Reflection& reflection = *message->GetReflection();
    if (!field->is_repeated())
      return Below(4) == 0 ? reflection.ClearField(message, field) : Set(message, field);
    const int size = reflection.FieldSize(*message, field);
    if (size > 0 && Below(3) == 0) return reflection.RemoveLast(message, field);
    if (size > 1 && Below(2) == 0) {
      return reflection.SwapElements(message, field, static_cast<int>(Below(size)),
                                     static_cast<int>(Below(size)));
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32 && size > 0) {
      return reflection.SetRepeatedInt32(message, field, static_cast<int>(Below(size)),
                                         static_cast<int32_t>(Number()));
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 && size > 0) {
      return reflection.SetRepeatedInt64(message, field, static_cast<int>(Below(size)), Number());
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT && size > 0) {
      return reflection.SetRepeatedFloat(message, field, static_cast<int>(Below(size)),
                                         static_cast<float>(Number()) / 7);
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && size > 0) {
      const Message& copied =
          reflection.GetRepeatedMessage(*message, field, static_cast<int>(Below(size)));
      reflection.AddMessage(message, field)->CopyFrom(copied);
    }
  }

  void Set(Message* message, const FieldDescriptor* field) {
    const Reflection& reflection = *message->GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection.SetBool(message, field, !reflection.GetBool(*message, field));
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection.SetInt32(message, field, static_cast<int32_t>(Number()));
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection.SetInt64(message, field, Number());
      case FieldDescriptor::CPPTYPE_ENUM:
        return reflection.SetEnumValue(message, field, static_cast<int>(Below(6)));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return reflection.SetFloat(message, field, static_cast<float>(Number()) / 7);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection.SetDouble(message, field, static_cast<double>(Number()) / 7);
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string text = reflection.GetString(*message, field);
        const std::vector<std::string> others = {"",
                                                 "a b\n",
                                                 "add",
                                                 "layer_norm_input_gradient",
                                                 "cross_entropy",
                                                 "max_pool_gradient",
                                                 text + "x"};
        return reflection.SetString(message, field, others[static_cast<size_t>(Below(7))]);
      }
      default:
        reflection.MutableMessage(message, field)->Clear();
    }
  }

  std::mt19937_64 random_;
};

// Number of seeds to try, unless the environment sets it.
inline uint64_t SeedsOr(uint64_t usual) {
  const char* const given = std::getenv("STAGECOACH_SEEDS");
  return given == nullptr ? usual : std::strtoull(given, nullptr, 10);
}

// Sets the digest that its reader expects, so that only the content decides.
inline void SetItsDigest(v1::Network* proto) {
  const std::string said(NetworkFromProto(*proto).status().message());
  const std::string before = "that of what was read ";
  const size_t at = said.find(before);
  if (at != std::string::npos) proto->set_sha256(said.substr(at + before.size(), 64));
}

// A network whose targets have weights, by class and by sample.
inline v1::Network WeightedNetworkMessage() {
  NetworkSpec spec = MlpNetworkSpec{.image = {3, 2, 1}, .hidden = 4, .layers = 2, .classes = 3};
  spec.objective = CrossEntropySpec{.class_weights = {1, 0, 2}};
  absl::StatusOr<Network> network = ExpandNetwork(spec);
  CHECK_OK(network.status());
  network = WithSampleWeights(*std::move(network), "weights");
  CHECK_OK(network.status());
  return ToProto(*network);
}

// One message of every network.
inline std::vector<v1::Network> NetworkMessages() {
  std::vector<NetworkSpec> specs;
  for (const ZooEntry& entry : ZooEntries()) specs.push_back(entry.spec);
  for (const ListedKinds& kinds : ListsOfEveryKind()) specs.emplace_back(kinds.list);
  std::vector<v1::Network> messages;
  for (const NetworkSpec& spec : specs) {
    absl::StatusOr<Network> network = ExpandNetwork(spec);
    CHECK_OK(network.status());
    messages.push_back(ToProto(*network));
  }
  messages.push_back(WeightedNetworkMessage());
  return messages;
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_NETWORK_NETWORK_CHANGES_TESTING_H_
