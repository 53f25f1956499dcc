// Answers as servers give them, and bytes that are none.
#include "services/common/s3/s3_xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(S3Xml, FindsElementsInOrder) {
  const std::string xml = "<?xml?><L><C><Key>a</Key></C><C><Key>b&amp;c</Key></C></L>";
  EXPECT_THAT(XmlElements(xml, "C"), ElementsAre("<Key>a</Key>", "<Key>b&amp;c</Key>"));
  EXPECT_EQ(XmlText(xml, "Key"), "a");
  EXPECT_EQ(XmlText(XmlElements(xml, "C")[1], "Key"), "b&c");
  EXPECT_EQ(XmlText("<ETag>&#34;5&quot;</ETag>", "ETag"), "\"5\"");
}

TEST(S3Xml, OfBytesThatAreNoneThereIsNothing) {
  for (const char* const xml : {"", "<", "<C", "<C>", "</C><C>", "<C></D>", "no xml", "<<C>>"}) {
    EXPECT_THAT(XmlElements(xml, "C"), IsEmpty()) << xml;
    EXPECT_EQ(XmlText(xml, "C"), "");
  }
  EXPECT_THAT(XmlElements("<C><C></C></C>", "C"), ElementsAre("<C>"));
}

TEST(S3Xml, WhatIsEscapedIsReadAsItWas) {
  for (const std::string text : {"a<b>c&d\"e", "&amp;", "", "\xc3\xbc"}) {
    EXPECT_EQ(XmlText("<T>" + XmlEscaped(text) + "</T>", "T"), text);
  }
}

}  // namespace
}  // namespace stagecoach
