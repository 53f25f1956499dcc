// The little of XML that S3's answers are made of: named elements with text, no attributes that
// matter. A reader of foreign bytes: it looks for names and never nests.
// Threads: any; pure.
#ifndef STAGECOACH_SERVICES_COMMON_S3_S3_XML_H_
#define STAGECOACH_SERVICES_COMMON_S3_S3_XML_H_

#include <string>
#include <string_view>
#include <vector>

namespace stagecoach {

// The inside of every element of this name, in order, as it stands there.
std::vector<std::string> XmlElements(std::string_view xml, std::string_view name);
// The text of the first one, with entities replaced; empty if there is none.
std::string XmlText(std::string_view xml, std::string_view name);
// For an element's text.
std::string XmlEscaped(std::string_view text);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_S3_S3_XML_H_
