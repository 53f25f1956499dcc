# stagecoach_module(NAME [SEQUENTIAL] [RPC] [ROWS] [FOLDERS ...] [DEPS ...] [TEST_DEPS ...]
#                   [NO_TSAN x_test.cc ...]): the library of the current folder.
#
# FOLDERS: sub-folders whose files belong to it too. tools/tidy.py refuses includes in a circle.
#
# RPC: most of its files include gRPC's headers (StagecoachPrecompiled.cmake).
# ROWS: its tests are hundreds of short rows, run by two processes and not by one each.
# NO_TSAN: tests that take long under ThreadSanitizer and have nothing for it to find.
#
# SEQUENTIAL: neither it nor its tests start a thread, so they have no tests under ThreadSanitizer.
#
# Every x.cc here belongs to library stagecoach_NAME, every x_test.cc to the program NAME_tests;
# x_main.cc and x_fuzz.cc are left to their own targets. New files need no CMake change.
function(stagecoach_module name)
  cmake_parse_arguments(arg "SEQUENTIAL;RPC;ROWS" "" "FOLDERS;DEPS;TEST_DEPS;TEST_LABELS;NO_TSAN" ${ARGN})
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(folder ${arg_FOLDERS})
    list(APPEND patterns ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_main|_fuzz)\\.cc$")
  set(library stagecoach_${name})
  if(sources)
    add_library(${library} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(${library} INTERFACE)
    set(scope INTERFACE)
  endif()
  # Sanitized code that computes little is compiled with -O0, which takes 40 % off the time for -O1.
  set(idle FALSE)
  if(STAGECOACH_SANITIZE AND name MATCHES "^(services_|coordinator|link|stage)")
    set(idle TRUE)
  endif()
  if(sources AND idle)
    target_compile_options(${library} PRIVATE -O0)
  endif()
  target_include_directories(${library} ${scope} ${CMAKE_SOURCE_DIR})
  target_link_libraries(${library} ${scope} ${arg_DEPS})
  set(headers core)
  set(unit_headers unit)
  if(arg_RPC)
    set(headers rpc)
    set(unit_headers rpc_unit)
  endif()
  if(sources)
    stagecoach_precompiled(${library} ${headers})
    # What every file of an RPC library includes takes longer than what it says.
    if(arg_RPC)
      set_target_properties(${library} PROPERTIES UNITY_BUILD ${STAGECOACH_UNITY}
                                                  UNITY_BUILD_BATCH_SIZE 6)
    endif()
  endif()
  if(arg_SEQUENTIAL AND STAGECOACH_SANITIZE MATCHES thread)
    set(tests)
  endif()
  if(arg_NO_TSAN AND STAGECOACH_SANITIZE MATCHES thread)
    foreach(test ${arg_NO_TSAN})
      list(REMOVE_ITEM tests ${CMAKE_CURRENT_SOURCE_DIR}/${test})
    endforeach()
  endif()
  if(tests)
    add_executable(${name}_tests ${tests})
    target_link_libraries(${name}_tests PRIVATE ${library} ${arg_TEST_DEPS} GTest::gmock
                                                GTest::gtest_main)
    # Tests are compiled more often than they compute: -O1 halves the time to build them. Under UBSan
    # a fifth more goes with the checks of every access (null, alignment, ...): the library's files
    # keep them, the tests' own code and what it inlines has ASan.
    set(level -O1)
    if(idle)
      set(level -O0)
    endif()
    if(STAGECOACH_SANITIZE MATCHES undefined)
      list(APPEND level -fno-sanitize=null,alignment,object-size,vptr)
    endif()
    target_compile_options(${name}_tests PRIVATE ${level})
    stagecoach_precompiled(${name}_tests ${unit_headers})
    # Half of what is left is googletest's templates, made anew in every file.
    set_target_properties(${name}_tests PROPERTIES UNITY_BUILD ${STAGECOACH_UNITY_TESTS}
                                                   UNITY_BUILD_BATCH_SIZE 6)
    target_compile_definitions(${name}_tests
                               PRIVATE STAGECOACH_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    # Thousands of processes start for longer than they test, sanitized ones above all.
    if(arg_ROWS)
      foreach(half 0 1)
        add_test(NAME ${name}_tests_${half} COMMAND ${name}_tests --gtest_brief=1)
        set_tests_properties(${name}_tests_${half} PROPERTIES
                             ENVIRONMENT "GTEST_TOTAL_SHARDS=2;GTEST_SHARD_INDEX=${half}"
                             TIMEOUT 600 COST 500 LABELS "unit;${name}")
      endforeach()
    elseif(STAGECOACH_SANITIZE)
      add_test(NAME ${name}_tests COMMAND ${name}_tests --gtest_brief=1)
      set_tests_properties(${name}_tests PROPERTIES TIMEOUT 600 LABELS "unit;${name}")
    else()
      gtest_discover_tests(${name}_tests DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                           PROPERTIES TIMEOUT 300 LABELS "unit;${name}")
    endif()
  endif()
endfunction()

# stagecoach_program(NAME MAIN_FILE DEPS ...): a program of the services.
function(stagecoach_program name main)
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE ${ARGN})
  if(STAGECOACH_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
  endif()
  stagecoach_precompiled(${name} rpc)
endfunction()
