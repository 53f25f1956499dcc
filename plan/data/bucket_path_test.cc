#include "plan/data/bucket_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_is.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

TEST(BucketPathTest, HasBucketAndKey) {
  EXPECT_EQ(*ParseBucketPath("s3://corpora/en/a b+c=d.txt"),
            (BucketPath{"corpora", "en/a b+c=d.txt"}));
  EXPECT_EQ(*ParseBucketPath("s3://corpora/en/"), (BucketPath{"corpora", "en"}));
  EXPECT_EQ(*ParseBucketPath("s3://corpora"), (BucketPath{"corpora", ""}));
  EXPECT_EQ(*ParseBucketPath("s3://corpora/"), (BucketPath{"corpora", ""}));
  EXPECT_EQ(ParseBucketPath("s3://corpora/en/x")->Text(), "s3://corpora/en/x");
  EXPECT_EQ(ParseBucketPath("s3://corpora/en/x")->PathInSet(), "corpora/en/x");
}

TEST(BucketPathTest, RefusesWhatServersResolveOrNoServerHas) {
  for (const char* const path :
       {"s3://", "s3://ab/x", "s3:///x", "s3://corp_ora/x", "s3://cor..pora/x", "s3://a@b.c/x",
        "s3://corpora/../x", "s3://corpora/x/./y", "s3://corpora//x", "s3://corpora/x\ny",
        "s3://corpora/\xff", "S3://corpora/x", "corpora/x"}) {
    EXPECT_THAT(ParseBucketPath(path).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want s3://BUCKET/KEY")))
        << path;
  }
}

TEST(BucketPathTest, TheSchemeIsInSmallLetters) {
  EXPECT_TRUE(IsMisspeltBucketPath("S3://corpora/x"));
  for (const char* const path : {"s3://corpora/x", "S3:/corpora/x", "/S3://corpora/x", "S3", ""}) {
    EXPECT_FALSE(IsMisspeltBucketPath(path)) << path;
  }
}

TEST(BucketPathTest, APrefixEndsAtASlash) {
  const BucketPath folder{"corpora", "en"};
  EXPECT_TRUE((BucketPath{"corpora", "en"}).IsIn(folder));
  EXPECT_TRUE((BucketPath{"corpora", "en/x"}).IsIn(folder));
  EXPECT_FALSE((BucketPath{"corpora", "english"}).IsIn(folder));
  EXPECT_FALSE((BucketPath{"corpora", ""}).IsIn(folder));
  EXPECT_FALSE((BucketPath{"corpora2", "en/x"}).IsIn(folder));
  EXPECT_TRUE((BucketPath{"corpora", "x"}).IsIn({"corpora", ""}));
}

}  // namespace
}  // namespace stagecoach
