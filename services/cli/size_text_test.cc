#include "services/cli/size_text.h"

#include "gtest/gtest.h"

namespace stagecoach {
namespace {

TEST(SizeText, IsReadInPowersOf1000AndOf1024) {
  const struct {
    const char* text;
    int64_t bytes;
  } rows[] = {{"1", 1},
              {"190 kB", 190000},
              {"1.5GiB", int64_t{3} << 29},
              {"8gb", 8'000'000'000},
              {"8Gi", int64_t{8} << 30},
              {"512m", 512'000'000},
              {"7b", 7},
              {"0.5 KiB", 512},
              {"2TiB", int64_t{2} << 40},
              {"4611686018427387904", int64_t{1} << 62}};
  for (const auto& row : rows) {
    const absl::StatusOr<int64_t> bytes = ParseSize(row.text);
    ASSERT_TRUE(bytes.ok()) << row.text;
    EXPECT_EQ(*bytes, row.bytes) << row.text;
  }
}

// Symptom: 9999999999GiB and 99999999999999999999 were taken, and were no limit at all.
TEST(SizeText, WhatIsNoneOrTooLargeIsRefused) {
  for (const char* text :
       {"", "0", "0.2", "-1", "-1MiB", "1e9", "many", "GiB", "1 mile", "5km", "1.2.3GB", "1iB",
        "1GiBB", "1 GB 2", "nan", "inf", "9999999999GiB", "99999999999999999999"}) {
    EXPECT_FALSE(ParseSize(text).ok()) << text;
  }
}

}  // namespace
}  // namespace stagecoach
