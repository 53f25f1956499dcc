// Conversion of fields between a protobuf message and attributes, for any message. One side uses
// reflection, the other a struct's visit (operations/attributes.h). Names and types are the same on
// both. FieldProblems reports a field that only one side has. A test calls it for every message
// that is converted so.
// Threads: any.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_FIELDS_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_FIELDS_H_

#include <string>
#include <vector>

#include "google/protobuf/message.h"
#include "operations/attributes.h"

namespace stagecoach {

// A choice (Choice of operations/attributes.h) is an enum whose values have its names:
// "PADDING_SAME" of enum Padding for "same". The value 0 is "left out" and stands for the default.
//
// Sets the field of each attribute, those with their default too. CHECKs that there is such a
// field, and such a value of its enum.
void SetFields(const Attributes& attributes, google::protobuf::Message* message);

// The fields of a message: an optional one that was left out has its default, and so has a choice.
// Others that were left out are 0, false or empty on the wire. A value of an enum that this version
// does not know is the text of its number, which no choice has.
Attributes FieldsOf(const google::protobuf::Message& message, const Attributes& defaults);

// What SetFields and FieldsOf could not do, a line each; empty where message and defaults agree.
// Fields of `other` are somebody else's.
std::vector<std::string> FieldProblems(const google::protobuf::Descriptor& message,
                                       const Attributes& defaults,
                                       const std::vector<std::string>& other = {});

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_FIELDS_H_
