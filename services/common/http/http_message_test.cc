#include "services/common/http/http_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HttpMessage, DecodesWhatIsAnEscapeAndLeavesTheRest) {
  EXPECT_EQ(DecodeUrl("/a%2Fb%20c+d", false), "/a/b c+d");
  EXPECT_EQ(DecodeUrl("a+b", true), "a b");
  EXPECT_EQ(DecodeUrl("100%", false), "100%");
  EXPECT_EQ(DecodeUrl("%4", false), "%4");
  EXPECT_EQ(DecodeUrl("%zz%41", false), "%zzA");
}

TEST(HttpMessage, FindsAFieldByItsWholeName) {
  EXPECT_EQ(FormValue("xa=1&a=2&a=3", "a"), "2");
  EXPECT_EQ(FormValue("a=%3D%26", "a"), "=&");
  EXPECT_EQ(FormValue("a=", "a"), "");
  EXPECT_EQ(FormValue("ab=1&a", "a"), std::nullopt);
  EXPECT_EQ(FormValue("", "a"), std::nullopt);
  EXPECT_EQ(FormValue("a=" + std::string(1025, 'x'), "a"), std::nullopt);
}

TEST(HttpMessage, OnlyAPageWithAFormMaySendOne) {
  EXPECT_THAT(HeadOf({}), HasSubstr("form-action 'none'"));
  HttpResponse form;
  form.has_form = true;
  EXPECT_THAT(HeadOf(form), HasSubstr("form-action 'self'"));
  EXPECT_THAT(HeadOf(form), Not(HasSubstr("unsafe")));
}

}  // namespace
}  // namespace stagecoach
