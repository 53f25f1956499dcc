# stagecoach_kernels(TARGET FOLDER NAMESPACE): adds the kernel files of a back end, FOLDER/kernels/*.cc, to
# its library, and a file that lists them: rms_norm.cc has to give RmsNormKernels(), or the program does not
# link. New files need no CMake change and stand in no other list.
#
# FOLDER/kernel_list.h declares what the list is: KernelList, and KernelLists(), which the written file has.
function(stagecoach_kernels target folder namespace)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/kernels/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  set(declarations "")
  set(calls "")
  foreach(source ${sources})
    get_filename_component(words ${source} NAME_WE)
    string(REPLACE "_" ";" words ${words})
    set(function "")
    foreach(word ${words})
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOUPPER ${first} first)
      string(APPEND function ${first}${rest})
    endforeach()
    string(APPEND declarations "KernelList ${function}Kernels();\n")
    string(APPEND calls "      ${function}Kernels(),\n")
  endforeach()
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${target}_kernel_list.cc)
  file(GENERATE OUTPUT ${list} CONTENT "// Written by cmake/StagecoachKernels.cmake.
#include \"${folder}/kernel_list.h\"

namespace ${namespace} {

${declarations}
std::vector<KernelList> KernelLists() {
  return {
${calls}  };
}

}  // namespace ${namespace}
")
  target_sources(${target} PRIVATE ${list} ${sources})
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
