#include "services/common/s3/s3_xml.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace stagecoach {

std::vector<std::string> XmlElements(std::string_view xml, std::string_view name) {
  const std::string open(absl::StrCat("<", std::string(name), ">"));
  const std::string close(absl::StrCat("</", std::string(name), ">"));
  std::vector<std::string> found;
  for (size_t at = xml.find(open); at != xml.npos; at = xml.find(open, at)) {
    at += open.size();
    const size_t end = xml.find(close, at);
    if (end == xml.npos) break;
    found.emplace_back(xml.substr(at, end - at));
    at = end + close.size();
  }
  return found;
}

std::string XmlText(std::string_view xml, std::string_view name) {
  const std::vector<std::string> found = XmlElements(xml, name);
  if (found.empty()) return "";
  return absl::StrReplaceAll(found.front(), {{"&lt;", "<"},
                                             {"&gt;", ">"},
                                             {"&quot;", "\""},
                                             {"&#34;", "\""},
                                             {"&apos;", "'"},
                                             {"&#39;", "'"},
                                             {"&amp;", "&"}});
}

std::string XmlEscaped(std::string_view text) {
  return absl::StrReplaceAll(std::string(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

}  // namespace stagecoach
