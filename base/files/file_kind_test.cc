#include "base/files/file_kind.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using std::string_literals::operator""s;
using testing::HasSubstr;

std::string NameOf(const std::string& head) {
  const std::optional<FileKind> kind = FileKindOf(head);
  return kind.has_value() ? std::string(kind->name) : "";
}

std::string ZipOf(const std::string& member) {
  std::string zip =
      "PK\x03\x04"s + std::string(22, '\0') + static_cast<char>(member.size()) + "\0\0\0"s;
  return zip + member;
}

// Files as they lie on disks under names that say something else.
TEST(FileKind, APlainKindIsNamed) {
  const std::string bmp = "BM\x36\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x08\0\0\0"s;
  const std::vector<std::pair<std::string, std::string>> files = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 1\n", "a Git LFS pointer"},
      {"/annex/objects/SHA256E-s1--4d.bin\n", "a git-annex pointer"},
      {"\n <!DOCTYPE HTML>\n<html>", "an HTML page"},
      {"<html lang=en>", "an HTML page"},
      {"<?xml version='1.0'?><Error><Code>AccessDenied", "an XML document"},
      {"\x80\x02\x8a\x0al\xfc\x9c"s, "a pickle of Python's"},
      {"\x80\x04\x95\x10\0"s, "a pickle of Python's"},
      {ZipOf("archive/data.pkl"), "PyTorch's zip of pickles (as torch.save writes .pt and .pth)"},
      {ZipOf("arr_0.npy"), "NumPy arrays (.npz)"},
      {ZipOf("cats/1.jpg"), "a zip archive"},
      {"\x1f\x8b\x08\0"s, "gzip data"},
      {"BZh91AY&SY", "bzip2 data"},
      {"\xfd"s + "7zXZ\0"s, "xz data"},
      {"RIFF\x10\0\0\0WEBPVP8 "s, "WebP"},
      {"\0\0\0\x18"
       "ftypheic\0\0"s,
       "HEIC"},
      {"\0\0\0\x18"
       "ftypmif1\0\0"s,
       "HEIC"},
      {"\0\0\0\x18"
       "ftypavif\0\0"s,
       "AVIF"},
      {"\0\0\0\x18"
       "ftypisom\0\0"s,
       "a film (MP4 or QuickTime)"},
      {"II*\0\x08\0"s, "TIFF"},
      {"MM\0*\0\0"s, "TIFF"},
      {"GIF89a\x01", "a GIF picture"},
      {bmp, "BMP"},
      {"%PDF-1.7\n", "a PDF document"},
      {R"({"metadata": {"total_size": 1}, "weight_map": {"a": "b"}})",
       "the index of sharded weights (index.json)"},
      {R"({"hidden_size": 8})", "JSON"},
      {std::string(257, 'a') + "ustar\0"s, "a tar archive"},
      {"PAR1\x15\x04"s, "Parquet"},
      {"\x89HDF\r\n\x1a\n"s, "HDF5 (as Keras writes .h5)"},
      {"\x93NUMPY\x01\0v\0{"s, "a NumPy array (.npy)"},
      {"GGUF\3\0\0\0"s, "GGUF"},
      {"\x0a\0\0\0\0\0\0\0{\"a\":"s, "a safetensors file"},
      {"\0\5\x16\7\0\2"s, "macOS's file beside a file (AppleDouble)"},
      {"Entry not found", "text"},
      {"", "an empty file"},
      {std::string(4096, '\0'), "a file that begins with zeros"},
  };
  for (const auto& [head, name] : files) EXPECT_EQ(NameOf(head), name);
}

// A shorter beginning is that of texts and numbers as well.
TEST(FileKind, WhatMayBeAnythingIsNotNamed) {
  EXPECT_EQ(NameOf("BM is how a bitmap begins, BZh how bzip2"), "text");
  EXPECT_EQ(NameOf("RIFF and ftyp"), "text");
  EXPECT_EQ(NameOf("\0\0\x08\x03\0\0\xea\x60"s), "") << "IDX";
  EXPECT_EQ(NameOf("\x80\x02\x7f\x81\x7f"s), "") << "numbers";
  EXPECT_EQ(NameOf("caf\xc3\xa9"), "");
}

TEST(FileKind, AnErrorSaysWhatItIsWhatIsWantedAndWhatToDo) {
  EXPECT_EQ(OtherKindText("RIFF\x10\0\0\0WEBP"s, "JPEG or PNG"), "WebP, not JPEG or PNG");
  EXPECT_EQ(OtherKindText("version https://git-lfs.github.com/spec/v1\n", "a tar file"),
            "a Git LFS pointer, not a tar file; fetch the file itself (git lfs pull)");
  EXPECT_THAT(OtherKindText("<!doctype html>", "a tar file"), HasSubstr("/resolve/"));
  EXPECT_EQ(OtherKindText("\0\0\x08\x03"s, "a tar file"), "");
}

}  // namespace
}  // namespace stagecoach
