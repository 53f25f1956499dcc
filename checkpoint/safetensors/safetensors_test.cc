#include "checkpoint/safetensors/safetensors.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/hash.h"
#include "checkpoint/safetensors/safetensors_header.h"
#include "checkpoint/testing/fault_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

TensorSource Source(const std::string& name, DType dtype, Shape shape, std::string bytes) {
  auto owned = std::make_shared<std::string>(std::move(bytes));
  return {name, dtype, std::move(shape), [owned]() -> absl::StatusOr<std::span<const std::byte>> {
            return std::as_bytes(std::span(*owned));
          }};
}

std::string FileOf(const std::string& header, const std::string& buffer) {
  std::string file(8, '\0');
  for (int i = 0; i < 8; ++i) file[i] = static_cast<char>(uint64_t{header.size()} >> (8 * i));
  return file + header + buffer;
}

// The status of opening a file with these bytes.
absl::Status OpenBytes(const std::string& bytes) {
  FaultFileSystem files;
  EXPECT_TRUE(files.Create("/f").ok());
  files.SetContents("/f", bytes);
  return SafetensorsReader::Open(files, "/f").status();
}

const std::string kTwoFloats("\x00\x00\x80\x3f\x00\x00\x00\x40", 8);

TEST(Safetensors, WritesThePublishedVectorByteForByte) {
  FaultFileSystem files;
  const std::vector<TensorSource> tensors = {Source("w", DType::kF32, {2}, kTwoFloats)};
  absl::StatusOr<WrittenFile> written = WriteSafetensors(files, "/f", tensors, {});
  ASSERT_TRUE(written.ok()) << written.status();
  const std::string vector =
      absl::StrCat(std::string("\x38\0\0\0\0\0\0\0", 8),
                   R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  )", kTwoFloats);
  EXPECT_EQ(files.Contents("/f"), vector);
  EXPECT_EQ(written->bytes, 72);
  EXPECT_EQ(written->sha256, Sha256Hex(vector));
  EXPECT_EQ(written->tensor_sha256.at(0), Sha256Hex(kTwoFloats));
}

// A Git LFS pointer was "header length 2336927755350992246".
TEST(SafetensorsReader, AFileOfAnotherKindIsNamed) {
  EXPECT_EQ(
      OpenBytes("version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 1\n").message(),
      "/f: a Git LFS pointer, not a safetensors file; fetch the file itself (git lfs pull)");
  EXPECT_EQ(OpenBytes("Entry not found").message(), "/f: text, not a safetensors file");
  EXPECT_EQ(OpenBytes("").message(), "/f: an empty file, not a safetensors file");
  EXPECT_THAT(std::string(OpenBytes(FileOf("{]}", "")).message()),
              HasSubstr("safetensors header: "))
      << "what begins as one is damaged, and no other kind";
}

TEST(Safetensors, ReadsBackEveryTypeScalarsAndEmptyTensors) {
  FaultFileSystem files;
  const Metadata metadata = {{"format", "pt"}, {"quote\"", "line\n\xc3\xa4"}};
  std::vector<TensorSource> tensors = {
      Source("a", DType::kF32, {2}, kTwoFloats), Source("b", DType::kBF16, {1, 3}, "abcdef"),
      Source("c", DType::kI32, {}, "abcd"),      Source("d", DType::kU8, {3}, "xyz"),
      Source("e", DType::kF64, {0, 7}, ""),      Source("f\xc3\xa4", DType::kI64, {1}, "12345678"),
      Source("g", DType::kF64, {1}, "87654321")};
  absl::StatusOr<WrittenFile> written = WriteSafetensors(files, "/f", tensors, metadata);
  ASSERT_TRUE(written.ok()) << written.status();
  absl::StatusOr<SafetensorsReader> reader = SafetensorsReader::Open(files, "/f");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->metadata(), metadata);
  EXPECT_EQ(reader->tensors().size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorEntry* entry = reader->Find(tensors[i].name);
    ASSERT_NE(entry, nullptr) << tensors[i].name;
    EXPECT_EQ(*entry, written->tensors[i]);
    std::string bytes(static_cast<size_t>(entry->bytes()), ' ');
    ASSERT_TRUE(reader->Read(*entry, std::as_writable_bytes(std::span(bytes))).ok());
    EXPECT_EQ(Sha256Hex(bytes), written->tensor_sha256[i]);
  }
  EXPECT_EQ(reader->Find("h"), nullptr);
}

TEST(Safetensors, RefusesToWriteWhatItWouldNotRead) {
  FaultFileSystem files;
  const auto write = [&files](std::vector<TensorSource> tensors, const Metadata& metadata) {
    return WriteSafetensors(files, "/f", tensors, metadata).status();
  };
  const std::string long_name(257, 'n');
  EXPECT_TRUE(absl::IsInvalidArgument(write({Source("", DType::kU8, {}, "x")}, {})));
  EXPECT_TRUE(absl::IsInvalidArgument(write({Source(long_name, DType::kU8, {}, "x")}, {})));
  EXPECT_TRUE(absl::IsInvalidArgument(write({Source("__metadata__", DType::kU8, {}, "x")}, {})));
  EXPECT_TRUE(absl::IsInvalidArgument(write({Source("\xff", DType::kU8, {}, "x")}, {})));
  EXPECT_TRUE(absl::IsInvalidArgument(write({}, {{"k", "\xff"}})));
  EXPECT_TRUE(absl::IsInvalidArgument(
      write({Source("a", DType::kU8, {}, "x"), Source("a", DType::kU8, {}, "y")}, {})));
  EXPECT_TRUE(absl::IsInvalidArgument(
      write({Source("a", DType::kU8, {1, 1, 1, 1, 1, 1, 1, 1, 1}, "x")}, {})));
  EXPECT_TRUE(
      absl::IsInvalidArgument(write({Source("a", DType::kF64, {int64_t{1} << 61}, "x")}, {})));
  EXPECT_FALSE(files.Exists("/f")) << "nothing is created for a header that cannot be written";
}

struct Hostile {
  const char* header;
  int64_t buffer_bytes;
  const char* message;
};

TEST(SafetensorsHeader, RefusesEveryWayNotToTileTheFile) {
  const Hostile rows[] = {
      {"", 0, "not one JSON object"},
      {"   ", 0, "not one JSON object"},
      {" {}", 0, "not one JSON object"},
      {"[]", 0, "not one JSON object"},
      {"{}\n", 0, "not one JSON object"},
      {"\xef\xbb\xbf{}", 0, "not one JSON object"},
      {"{}{}", 0, "not JSON"},
      {"{", 0, "not one JSON object"},
      {"{}", 1, "tensors end at 0, the buffer has 1"},
      {R"({"a":1})", 0, "did not expect a number"},
      {R"({"a":[]})", 0, "did not expect an array"},
      {R"({"a":{}})", 0, "missing"},
      {R"({"a":{"dtype":"U8","shape":[1]}})", 1, "missing"},
      {R"({"a":{"dtype":"F8_E5M2","shape":[2],"data_offsets":[0,2]}})", 2,
       "dtype \"F8_E5M2\" is not one this program holds (F32, F16, BF16, F64, I64, I32, U8)"},
      {R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,2]}})", 2, "did not expect a number"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", 1, "unknown key \"x\""},
      {R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1, "given twice"},
      {R"({"a":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}})", 1, "given twice"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
           "\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       2, "given twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "given twice"},
      {R"({"__metadata__":{"k":"1","k":"2"}})", 0, "__metadata__ key \"k\": given twice"},
      {R"({"__metadata__":{"k":1}})", 0, "__metadata__ key \"k\": did not expect a number"},
      {R"({"__metadata__":{"k":null}})", 0, "did not expect null"},
      {R"({"a":null})", 0, "did not expect null"},
      {R"({"__metadata__":{"k":{}}})", 0, "did not expect an object"},
      {R"({"__metadata__":"k"})", 0, "did not expect a string"},
      {R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1, "negative"},
      {R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1, "no integer"},
      {R"({"a":{"dtype":"U8","shape":[1e0],"data_offsets":[0,1]}})", 1, "no integer"},
      {R"({"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})", 1, "did not expect a string"},
      {R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", 1, "did not expect an array"},
      {R"({"a":{"dtype":"U8","shape":[null],"data_offsets":[0,1]}})", 1, "did not expect null"},
      {R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1, "over 8"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1, "not two numbers"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 1, "over 2"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1, "do not hold"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,7]}})", 7, "do not hold"},
      {R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,1]}})", 1, "2^63"},
      {R"({"a":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,1]}})", 1,
       "no integer"},
      {R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "2^62"},
      {R"({"a":{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0,
       "overflow"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2, "begins at 1"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
           "b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, "begins at 1"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
           "b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       3, "begins at 2"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 2, "tensors end at 1"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 1, "tensors end at 2"},
      {R"({"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1, "want 1 to 256"},
      {R"({"a\u0000":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1, "control"},
      {"{\"a\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "not JSON"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},})", 1, "not JSON"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}/**/})", 1, "not JSON"},
  };
  for (const Hostile& row : rows) {
    std::vector<TensorEntry> tensors;
    Metadata metadata;
    const absl::Status status =
        ParseSafetensorsHeader(row.header, row.buffer_bytes, &tensors, &metadata);
    EXPECT_TRUE(absl::IsDataLoss(status)) << row.header << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.message)) << row.header;
  }
}

TEST(SafetensorsHeader, RefusesZeroBytesThatEndTheTextEarly) {
  std::vector<TensorEntry> tensors;
  Metadata metadata;
  const std::string_view header("{}\0{}", 5);
  EXPECT_TRUE(absl::IsDataLoss(ParseSafetensorsHeader(header, 0, &tensors, &metadata)));
}

TEST(SafetensorsHeader, TakesTensorsInAnyOrderAndSortsThemByOffset) {
  std::vector<TensorEntry> tensors;
  Metadata metadata;
  const absl::Status status =
      ParseSafetensorsHeader(R"({"z":{"data_offsets":[1,3],"shape":[2],"dtype":"U8"},)"
                             R"("e":{"dtype":"F32","shape":[0],"data_offsets":[1,1]},)"
                             R"("a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}   )",
                             3, &tensors, &metadata);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[1].name, "e");
  EXPECT_EQ(tensors[2].name, "z");
}

// Symptom: "did not expect null"; the format's library takes it for none.
TEST(SafetensorsHeader, MetadataMayBeNull) {
  std::vector<TensorEntry> tensors;
  Metadata metadata;
  const absl::Status status = ParseSafetensorsHeader(
      R"({"__metadata__":null,"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1, &tensors,
      &metadata);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(tensors.size(), 1u);
  EXPECT_TRUE(metadata.empty());
}

TEST(SafetensorsHeader, StopsAtTheLimits) {
  const auto parse = [](const std::string& header) {
    std::vector<TensorEntry> tensors;
    Metadata metadata;
    return ParseSafetensorsHeader(header, 0, &tensors, &metadata);
  };
  const std::string nothing = R"(:{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_TRUE(parse("{\"" + std::string(256, 'n') + "\"" + nothing + "}").ok());
  EXPECT_THAT(std::string(parse("{\"" + std::string(257, 'n') + "\"" + nothing + "}").message()),
              HasSubstr("want 1 to 256"));
  std::string many = "{";
  for (int i = 0; i <= 100'000; ++i) {
    absl::StrAppend(&many, i == 0 ? "" : ",", "\"", i, "\"", nothing);
  }
  EXPECT_THAT(std::string(parse(many + "}").message()), HasSubstr("over 100000 tensors"));
  EXPECT_THAT(std::string(parse("{}" + std::string(16 << 20, ' ')).message()), HasSubstr("16 MiB"));
  EXPECT_TRUE(absl::IsDataLoss(parse("{\"a\":" + std::string(1 << 20, '[') + "}")));
}

TEST(SafetensorsReader, RefusesALengthThatTheFileCannotHold) {
  for (const uint64_t length : {uint64_t{3}, uint64_t{17} << 20, UINT64_MAX, UINT64_MAX - 7}) {
    std::string file(10, ' ');
    for (int i = 0; i < 8; ++i) file[i] = static_cast<char>(length >> (8 * i));
    EXPECT_TRUE(absl::IsDataLoss(OpenBytes(file))) << length;
  }
}

TEST(SafetensorsReader, RefusesEveryTruncationAndExtension) {
  const std::string file =
      FileOf(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}   )", "xyz");
  EXPECT_TRUE(OpenBytes(file).ok());
  for (size_t length = 0; length < file.size(); ++length) {
    const absl::Status status = OpenBytes(file.substr(0, length));
    EXPECT_TRUE(absl::IsDataLoss(status)) << length;
    EXPECT_TRUE(absl::StrContains(status.message(), "/f")) << status;
  }
  EXPECT_TRUE(absl::IsDataLoss(OpenBytes(file + "!")));
}

// No promise about the result, as only the manifest's digest can tell a changed name from a good
// one; but whatever is accepted tiles the file, and the sanitizers watch.
TEST(SafetensorsReader, SurvivesEveryByteValueInEveryHeaderPosition) {
  const std::string header = R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})";
  for (size_t i = 0; i < header.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = header;
      changed[i] = static_cast<char>(value);
      std::vector<TensorEntry> tensors;
      Metadata metadata;
      if (!ParseSafetensorsHeader(changed, 3, &tensors, &metadata).ok()) continue;
      ASSERT_EQ(tensors.size(), 1u) << changed;
      EXPECT_EQ(tensors[0].begin, 0);
      EXPECT_EQ(tensors[0].end, 3);
    }
  }
}

}  // namespace
}  // namespace stagecoach
