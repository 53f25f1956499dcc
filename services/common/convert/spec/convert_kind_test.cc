// Data sources, optimizers and forms of the learning rate are messages and structs: both sides have
// the same kinds with the same fields.
#include "services/common/convert/spec/convert_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/job/data_kinds.h"
#include "plan/job/learning_rate_kinds.h"
#include "plan/job/optimizer_kinds.h"
#include "services/common/convert/fields/field_problems_testing.h"
#include "services/common/convert/spec/other_value_testing.h"
#include "stagecoach/v1/data.pb.h"
#include "stagecoach/v1/training.pb.h"

namespace stagecoach {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// A message with kinds and the list that it stands for.
template <typename Proto, typename Kind>
struct Pairing {
  const KindList<Kind>& list;
  Proto proto = {};

  const Descriptor& type() const { return *Proto::descriptor(); }
  const Descriptor& MessageOf(const Kind& kind) const {
    const FieldDescriptor* field = type().FindFieldByName(std::string(kind.name()));
    CHECK(field != nullptr) << kind.name();
    return *field->message_type();
  }

  void ExpectSameKinds() const {
    std::vector<std::string> kinds, members;
    for (const Kind* kind : list.all()) kinds.emplace_back(kind->name());
    const google::protobuf::OneofDescriptor& choice = *type().FindOneofByName("kind");
    for (int i = 0; i < choice.field_count(); ++i) members.push_back(choice.field(i)->name());
    EXPECT_THAT(members, testing::UnorderedElementsAreArray(kinds));
  }
  void ExpectSameFields() const {
    for (const Kind* kind : list.all()) {
      EXPECT_THAT(FieldProblems(MessageOf(*kind), kind->Defaults()), testing::IsEmpty());
    }
  }
  // Each field by itself is set to something else than its default, goes over and comes back.
  void ExpectEveryFieldComesBack() const {
    for (const Kind* kind : list.all()) {
      KindSpec spec;
      spec.kind = kind->name();
      spec.attributes = kind->Defaults();
      ExpectComesBack(spec);
      for (const Attributes::Entry& entry : spec.attributes.entries()) {
        KindSpec changed = spec;
        changed.attributes.Set(
            entry.name, OtherValue(entry.value, *MessageOf(*kind).FindFieldByName(entry.name)));
        ASSERT_NE(changed, spec) << entry.name;
        ExpectComesBack(changed);
      }
    }
  }
  void ExpectComesBack(const KindSpec& spec) const {
    Proto message;
    KindToProto(spec, &message);
    const absl::StatusOr<KindSpec> back = KindFromProto<KindSpec>(message, list, KindSpec());
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, spec) << message.DebugString();
  }
  void ExpectLeftOutIsDefault() const {
    for (const Kind* kind : list.all()) {
      Proto message;
      message.GetReflection()->MutableMessage(&message,
                                              type().FindFieldByName(std::string(kind->name())));
      const absl::StatusOr<KindSpec> spec = KindFromProto<KindSpec>(message, list, KindSpec());
      ASSERT_TRUE(spec.ok()) << spec.status();
      EXPECT_EQ(spec->attributes, kind->Defaults()) << kind->name();
    }
  }
  void ExpectAll() const {
    ExpectSameKinds();
    ExpectSameFields();
    ExpectEveryFieldComesBack();
    ExpectLeftOutIsDefault();
  }
};

TEST(KindMessages, OfDataAreTheSources) {
  Pairing<v1::Data, DataKind>{.list = DataKinds()}.ExpectAll();
}

TEST(KindMessages, OfOptimizersAreTheOptimizers) {
  Pairing<v1::Optimizer, OptimizerKind>{.list = OptimizerKinds()}.ExpectAll();
}

TEST(KindMessages, OfLearningRatesAreTheForms) {
  Pairing<v1::LearningRate, LearningRateKind>{.list = LearningRateKinds()}.ExpectAll();
}

TEST(KindMessages, NothingSetIsNamedWithWhatThereIs) {
  EXPECT_EQ(NoKindSet(v1::LearningRate(), "training.learning_rate").message(),
            "training.learning_rate: not set, want constant, linear, cosine, inverse_square_root, "
            "exponential, step or noam");
  v1::Data data;
  KindToProto(DataSpec(), &data);
  EXPECT_EQ(data.kind_case(), v1::Data::KIND_NOT_SET);
}

// Bytes of stored jobs: numbers and types of fields stay what they are.
TEST(KindMessages, HaveTheBytesThatStoredJobsHave) {
  KindSpec text;
  text.kind = "text";
  text.attributes.Set("path", "ab");
  text.attributes.Set("bytes", true);
  v1::Data data;
  KindToProto(text, &data);
  EXPECT_EQ(data.SerializeAsString(), std::string("\x0a\x06\x0a\x02"
                                                  "ab\x10\x01"));
  KindSpec sgd;
  sgd.kind = "sgd";
  sgd.attributes.Set("momentum", 0.5);
  sgd.attributes.Set("weight_decay", 0.0);
  v1::Optimizer optimizer;
  KindToProto(sgd, &optimizer);
  EXPECT_EQ(optimizer.SerializeAsString(), std::string("\x12\x09\x09\0\0\0\0\0\0\xe0\x3f", 11));
}

}  // namespace
}  // namespace stagecoach
