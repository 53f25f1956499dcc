# stagecoach_precompiled(TARGET SET): the headers of SET are parsed once for all targets.
#
# For all code: a third of the time went to the headers of gRPC, protobuf, googletest, absl and the standard
# library. With -DSTAGECOACH_UNITY=OFF files that see neither gRPC nor googletest are parsed on their own: that
# shows which one misses an include.
#
# Call it after the target's compile options are set: targets with the same options share a header.
# A target must link what the set's headers come from (macros have to be the same on both sides).
set(STAGECOACH_PRECOMPILED_core <absl/status/statusor.h> <absl/strings/str_cat.h>
    <absl/strings/str_format.h> <absl/strings/str_join.h> <algorithm> <chrono> <functional> <map> <memory>
    <mutex> <optional> <set> <span> <string> <variant> <vector>)
set(STAGECOACH_LINKED_core absl::statusor absl::strings absl::str_format)
set(STAGECOACH_PRECOMPILED_unit ${STAGECOACH_PRECOMPILED_core} <gtest/gtest.h> <gmock/gmock.h>)
set(STAGECOACH_LINKED_unit ${STAGECOACH_LINKED_core} GTest::gmock)
set(STAGECOACH_PRECOMPILED_grpc ${STAGECOACH_PRECOMPILED_core} <grpcpp/grpcpp.h>
    <google/protobuf/generated_message_reflection.h>)
set(STAGECOACH_LINKED_grpc ${STAGECOACH_LINKED_core} gRPC::grpc++ protobuf::libprotobuf)
# With our own messages; what makes these has the set before.
set(STAGECOACH_PRECOMPILED_rpc ${STAGECOACH_PRECOMPILED_grpc} <stagecoach/v1/fleet.pb.h>
    <stagecoach/v1/job.pb.h>)
set(STAGECOACH_LINKED_rpc ${STAGECOACH_LINKED_grpc} stagecoach_proto)
set(STAGECOACH_PRECOMPILED_rpc_unit ${STAGECOACH_PRECOMPILED_rpc} <gtest/gtest.h> <gmock/gmock.h>)
set(STAGECOACH_LINKED_rpc_unit ${STAGECOACH_LINKED_rpc} GTest::gmock)

function(stagecoach_precompiled target set)
  if(NOT STAGECOACH_UNITY AND NOT STAGECOACH_SANITIZE AND NOT target MATCHES "_tests$" AND NOT set MATCHES "rpc")
    return()
  endif()
  get_target_property(options ${target} COMPILE_OPTIONS)
  if(NOT options)
    set(options)
  endif()
  get_target_property(type ${target} TYPE)  # programs and libraries differ in -fPIE and -fPIC
  if(NOT type STREQUAL EXECUTABLE)
    set(type LIBRARY)
  endif()
  string(SHA1 key "${type} ${options}")
  string(SUBSTRING ${key} 0 8 key)
  set(header precompiled_${set}_${key})
  if(NOT TARGET ${header})
    set(source ${CMAKE_BINARY_DIR}/${header}.cc)
    file(GENERATE OUTPUT ${source} CONTENT "int main() {}\n")
    if(type STREQUAL EXECUTABLE)
      add_executable(${header} EXCLUDE_FROM_ALL ${source})
    else()
      add_library(${header} OBJECT EXCLUDE_FROM_ALL ${source})
    endif()
    target_compile_options(${header} PRIVATE ${options})
    target_link_libraries(${header} PRIVATE ${STAGECOACH_LINKED_${set}})
    target_precompile_headers(${header} PRIVATE ${STAGECOACH_PRECOMPILED_${set}})
    # ccache asks the preprocessor what goes in, and that one answers with the precompiled header that is
    # still there: after a change of a message it would be handed out again. So it makes none; it is told what is in them.
    set_target_properties(${header} PROPERTIES CXX_COMPILER_LAUNCHER ${CMAKE_SOURCE_DIR}/cmake/precompiled_launcher)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${header})
endfunction()
