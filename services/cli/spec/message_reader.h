// MessageReader: fills a protobuf message from a YAML tree by walking the message's descriptor.
// Each scalar is converted by the type of its field, not by YAML's guessing: `name: no` stays a
// string.
// Threads:   pure function.
// Errors:    see services/cli/spec/spec_reader.h.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_MESSAGE_READER_H_
#define STAGECOACH_SERVICES_CLI_SPEC_MESSAGE_READER_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "services/cli/spec/yaml_tree.h"

namespace stagecoach {

// `positions` gets the place of every field and list item by path.
absl::Status ReadMessage(const YamlNode& root, const std::string& file,
                         google::protobuf::Message* message,
                         std::map<std::string, Position>* positions);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_MESSAGE_READER_H_
