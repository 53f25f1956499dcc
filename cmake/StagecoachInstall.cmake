# `cmake --install build --prefix P`: programs, manual pages, completions, systemd units, examples and documents.
# Nothing of tests and benchmarks.
#
# The prefix is known at the installation only, and manual pages and completions come from the programs. So a script
# makes these files then (install_made_files.cmake).
include(GNUInstallDirs)

# The client starts stagecoach-train-tokenizer, and `stagecoach local` the servers, from its own folder.
install(TARGETS stagecoach stagecoach-coordinator stagecoach-stage stagecoach-train-tokenizer
        RUNTIME DESTINATION bin)

# Job files name ../LICENSE as a text to train on.
file(GLOB examples CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/*.yaml)
install(FILES ${examples} ${CMAKE_SOURCE_DIR}/examples/README.md DESTINATION share/stagecoach/examples)
install(FILES LICENSE DESTINATION share/stagecoach)
install(FILES deploy/prometheus/stagecoach.rules.yml DESTINATION share/stagecoach/prometheus)
install(FILES deploy/grafana/dashboards/stagecoach.json DESTINATION share/stagecoach/grafana)

install(FILES README.md CHANGELOG.md DESTINATION share/doc/stagecoach)
install(FILES LICENSE DESTINATION share/doc/stagecoach RENAME copyright)
# The coordinator has it within: its licence asks for its notice in every copy.
install(FILES /usr/share/doc/libjs-chart.js/copyright DESTINATION share/doc/stagecoach
        RENAME copyright.chart.js OPTIONAL)
file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md)
install(FILES ${pages} DESTINATION share/doc/stagecoach/docs)
install(DIRECTORY docs/architecture docs/job_files DESTINATION share/doc/stagecoach/docs
        FILES_MATCHING PATTERN "*.md")

install(CODE "set(stagecoach_python \"${STAGECOACH_PYTHON}\")
set(stagecoach_source \"${CMAKE_SOURCE_DIR}\")
set(stagecoach_programs \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\")
set(stagecoach_build \"${CMAKE_BINARY_DIR}\")")
install(SCRIPT cmake/install_made_files.cmake)
