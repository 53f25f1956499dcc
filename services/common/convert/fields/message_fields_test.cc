// A field that a list forgot makes these tests fail, whichever side has it.
#include "services/common/convert/fields/message_fields.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "services/common/convert/convert_card.h"
#include "services/common/convert/convert_control.h"
#include "services/common/convert/convert_snapshot.h"
#include "services/common/convert/spec/convert_spec.h"
#include "services/common/convert/spec/job_spec_testing.h"

namespace stagecoach {
namespace {

using google::protobuf::Message;

constexpr double kNumber = 3;

void FillField(Message* message, const ProtoField* field) {
  const ProtoReflection& reflection = *message->GetReflection();
  if (field->cpp_type() == ProtoField::CPPTYPE_ENUM) {
    return field->is_repeated() ? reflection.AddEnumValue(message, field, 2)
                                : reflection.SetEnumValue(message, field, 2);
  }
  const auto fill = [&](auto value) {
    using T = decltype(value);
    if (field->is_repeated()) return WriteField(message, field, std::vector<T>(3, value));
    WriteField(message, field, value);
  };
  switch (field->cpp_type()) {
    case ProtoField::CPPTYPE_BOOL:
      return reflection.SetBool(message, field, true);
    case ProtoField::CPPTYPE_INT32:
      return fill(static_cast<int32_t>(kNumber));
    case ProtoField::CPPTYPE_INT64:
      return fill(static_cast<int64_t>(kNumber));
    case ProtoField::CPPTYPE_UINT32:
      return fill(static_cast<uint32_t>(kNumber));
    case ProtoField::CPPTYPE_UINT64:
      return fill(static_cast<uint64_t>(kNumber));
    case ProtoField::CPPTYPE_DOUBLE:
      return fill(kNumber);
    default:
      return fill(field->name());
  }
}

// Sets all fields, those of inner messages too, but for `except`. Choices and maps stay empty.
void Fill(Message* message, const std::set<std::string>& except) {
  const google::protobuf::Descriptor& type = *message->GetDescriptor();
  const ProtoReflection& reflection = *message->GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const ProtoField* field = type.field(i);
    if (except.contains(field->name()) || field->is_map() || field->real_containing_oneof()) {
      continue;
    }
    if (field->cpp_type() != ProtoField::CPPTYPE_MESSAGE) {
      FillField(message, field);
    } else if (field->is_repeated()) {
      Fill(reflection.AddMessage(message, field), except);
    } else {
      Fill(reflection.MutableMessage(message, field), except);
    }
  }
}

template <typename Proto>
Proto Filled(const std::set<std::string>& except = {}) {
  Proto proto;
  Fill(&proto, except);
  return proto;
}

template <typename Proto>
void ExpectWhole(const Proto& proto) {
  EXPECT_EQ(ToProto(FromProto(proto)).DebugString(), proto.DebugString());
}
template <typename Proto>
void ExpectWholeIfRead(const Proto& proto) {
  const auto value = FromProto(proto);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(ToProto(*value).DebugString(), proto.DebugString());
}

TEST(MessageFields, EveryFieldOfControlMessagesComesBack) {
  ExpectWhole(Filled<v1::Fence>());
  ExpectWhole(Filled<v1::MemoryBytes>());
  ExpectWhole(Filled<v1::LoadCellResponse>({"checksum"}));
  ExpectWhole(Filled<v1::WriteShardRequest>({"checksum", "grant"}));
  ExpectWhole(Filled<v1::ProfileModelResponse>({"checksum"}));
  ExpectWhole(Filled<v1::Card>());
  ExpectWhole(Filled<v1::Processor>());
  ExpectWholeIfRead(Filled<v1::StageDeath>());
  ExpectWholeIfRead(Filled<v1::RunRequest>({"checksum", "data_grants"}));
  auto response = Filled<v1::RunResponse>({"checksum"});
  *response.mutable_phases() = ToProto(PhaseSeconds());
  ExpectWhole(response);
}

TEST(MessageFields, EveryFieldOfShardsComesBack) {
  auto response = Filled<v1::WriteShardResponse>({"checksum"});
  response.mutable_tensors(0)->set_dtype("F32");
  ExpectWholeIfRead(response);
  auto shard = Filled<v1::SnapshotShard>();
  shard.mutable_tensors(0)->set_dtype("F32");
  shard.clear_layers();
  shard.add_layers()->set_last(5);
  shard.set_file(ShardFileName({{0, 5}}));
  ExpectWholeIfRead(shard);
}

TEST(MessageFields, EveryFieldOfALoadComesBack) {
  auto load = Filled<v1::LoadCellRequest>({"job", "network", "checksum", "stage_name",
                                           "checkpoint_grant", "probe_grant", "data_grants"});
  load.clear_first_layers();
  for (const int first : {0, 1, 2, 3}) load.add_first_layers(first);
  load.clear_placement();
  for (const int stage : {0, 1, 2, 3}) load.add_placement(stage);
  load.set_stage(3);
  load.mutable_neighbours()->DeleteSubrange(1, load.neighbours_size() - 1);
  load.mutable_fence()->set_job("j");
  *load.mutable_job() = ToProto(GptJob());
  LoadCommand command;
  command.network = std::make_shared<const Network>(ExpandJob(GptJob()).value());
  command.spec = GptJob();
  *load.mutable_network() = ToProto(command).network();
  ExpectWholeIfRead(load);
}

TEST(MessageFields, EveryFieldOfAJobComesBack) {
  v1::JobSpec proto = ToProto(GptJob());
  // `dataset` and `on_stages` become part of the paths (data_places_test.cc).
  Fill(&proto, {"model", "data", "optimizer", "learning_rate", "rule", "dataset", "on_stages"});
  ExpectWholeIfRead(proto);
  proto.mutable_pipeline()->mutable_partition()->clear_cuts();
  proto.mutable_pipeline()->mutable_partition()->set_rule(v1::PARTITION_RULE_UNIFORM);
  ExpectWholeIfRead(proto);
}

TEST(MessageFields, AnUnknownValueIsNamedWithItsPath) {
  v1::JobSpec proto = ToProto(GptJob());
  proto.mutable_pipeline()->set_rematerialization(static_cast<v1::Rematerialization>(9));
  EXPECT_EQ(FromProto(proto).status().message(),
            "pipeline.rematerialization=9: this version does not know that value");
  v1::RunRequest run;
  run.set_work(static_cast<v1::WorkKind>(9));
  EXPECT_EQ(FromProto(run).status().message(), "work=9: this version does not know that value");
}

}  // namespace
}  // namespace stagecoach
