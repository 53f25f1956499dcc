// Messages of networks with something changed at random: each is refused, or is a network that comes back as it was.
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "network/network_kinds.h"
#include "network/network_testing.h"
#include "network/zoo/every_network_testing.h"
#include "services/common/convert/convert_network.h"

namespace stagecoach {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class Changer {
 public:
  explicit Changer(uint64_t seed) : random_(seed) {}

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

  // One field of one message, which is chosen by a walk down the tree.
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

// STAGECOACH_SEEDS=20000 looks for longer.
uint64_t Seeds() {
  const char* const given = std::getenv("STAGECOACH_SEEDS");
  return given == nullptr ? 300 : std::strtoull(given, nullptr, 10);
}

// With the digest that its reader finds, so that nothing but what it holds decides.
void SetItsDigest(v1::Network* proto) {
  const std::string said(NetworkFromProto(*proto).status().message());
  const std::string before = "that of what was read ";
  const size_t at = said.find(before);
  if (at != std::string::npos) proto->set_sha256(said.substr(at + before.size(), 64));
}

std::vector<v1::Network> Messages() {
  std::vector<ModelSpec> models;
  for (const ZooEntry& entry : ZooEntries()) models.push_back(entry.model);
  for (const ListedKinds& kinds : ListsOfEveryKind()) models.emplace_back(kinds.list);
  std::vector<v1::Network> messages;
  for (const ModelSpec& model : models) {
    absl::StatusOr<Network> network = ExpandModel(model);
    CHECK_OK(network.status());
    messages.push_back(ToProto(*network));
  }
  return messages;
}

class ChangedNetworks : public testing::Test {
 protected:
  void Expect(v1::Network proto) {
    SetItsDigest(&proto);
    const absl::StatusOr<Network> network = NetworkFromProto(proto);
    if (!network.ok()) {
      EXPECT_EQ(network.status().code(), absl::StatusCode::kInvalidArgument);
      ++refused_;
      return;
    }
    ++taken_;
    const absl::StatusOr<Network> again = NetworkFromProto(ToProto(*network));
    ASSERT_TRUE(again.ok()) << again.status();
    ExpectSameNetwork(*again, *network);
  }

  int refused_ = 0, taken_ = 0;
};

TEST_F(ChangedNetworks, OfOtherBytesAreRefusedOrComeBackAsTheyWere) {
  const google::protobuf::LogSilencer silencer;  // of texts that are none
  for (const v1::Network& message : Messages()) {
    const std::string bytes = message.SerializeAsString();
    for (uint64_t seed = 0; seed < Seeds(); ++seed) {
      std::string changed = bytes;
      Changer(seed).ChangeBytes(&changed);
      v1::Network proto;
      if (proto.ParseFromString(changed)) Expect(std::move(proto));
    }
  }
  EXPECT_GT(refused_, 100);
  EXPECT_GT(taken_, 10);
}

TEST_F(ChangedNetworks, OfOtherFieldsAreRefusedOrComeBackAsTheyWere) {
  for (const v1::Network& message : Messages()) {
    for (uint64_t seed = 0; seed < Seeds(); ++seed) {
      v1::Network proto = message;
      Changer changer(seed);
      changer.ChangeField(&proto);
      if (seed % 3 == 0) changer.ChangeField(&proto);
      Expect(std::move(proto));
    }
  }
  EXPECT_GT(refused_, 500);
  EXPECT_GT(taken_, 100);
}

}  // namespace
}  // namespace stagecoach
