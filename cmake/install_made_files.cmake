# Run by `cmake --install` (StagecoachInstall.cmake): makes and installs what depends on the prefix or comes from the
# programs themselves.
#
# In: stagecoach_source, stagecoach_build (folders), stagecoach_programs (the folder of the built programs),
# stagecoach_python, and CMAKE_INSTALL_PREFIX. file(INSTALL) puts DESTDIR in front of it.

# A folder of its own, as two installations may run at once.
string(RANDOM LENGTH 12 stagecoach_made)
set(stagecoach_made "${stagecoach_build}/install-${stagecoach_made}")
file(MAKE_DIRECTORY "${stagecoach_made}")

execute_process(COMMAND "${stagecoach_python}" "${stagecoach_source}/tools/man_pages.py" "${stagecoach_programs}"
                        "${stagecoach_made}/man"
                COMMAND_ERROR_IS_FATAL ANY)
file(INSTALL "${stagecoach_made}/man" DESTINATION "${CMAKE_INSTALL_PREFIX}/share")

# Debian's zsh and fish look for what packages bring in folders of their own.
set(zsh_folder share/zsh/site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(zsh_folder share/zsh/vendor-completions)
endif()
foreach(shell bash zsh fish)
  execute_process(COMMAND "${stagecoach_programs}/stagecoach" completion ${shell}
                  OUTPUT_FILE "${stagecoach_made}/${shell}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(INSTALL "${stagecoach_made}/bash" RENAME stagecoach
     DESTINATION "${CMAKE_INSTALL_PREFIX}/share/bash-completion/completions")
file(INSTALL "${stagecoach_made}/zsh" RENAME _stagecoach DESTINATION "${CMAKE_INSTALL_PREFIX}/${zsh_folder}")
file(INSTALL "${stagecoach_made}/fish" RENAME stagecoach.fish
     DESTINATION "${CMAKE_INSTALL_PREFIX}/share/fish/vendor_completions.d")

# As in GNU's rules: programs below /usr have their settings in /etc.
set(etc "${CMAKE_INSTALL_PREFIX}/etc")
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(etc /etc)
endif()
set(bin "${CMAKE_INSTALL_PREFIX}/bin")
set(docs "${CMAKE_INSTALL_PREFIX}/share/doc/stagecoach/docs")
set(systemd "${stagecoach_source}/deploy/systemd")
foreach(server coordinator stage)
  configure_file("${systemd}/stagecoach-${server}.service.in" "${stagecoach_made}/stagecoach-${server}.service" @ONLY)
  file(INSTALL "${stagecoach_made}/stagecoach-${server}.service"
       DESTINATION "${CMAKE_INSTALL_PREFIX}/lib/systemd/system")
  # An operator's settings stay; dpkg asks by itself what to do with them.
  if(NOT EXISTS "$ENV{DESTDIR}${etc}/stagecoach/${server}.env")
    file(INSTALL "${systemd}/${server}.env" DESTINATION "${etc}/stagecoach")
  endif()
endforeach()
configure_file("${systemd}/tmpfiles.conf.in" "${stagecoach_made}/tmpfiles.conf" @ONLY)
file(INSTALL "${stagecoach_made}/tmpfiles.conf" RENAME stagecoach.conf
     DESTINATION "${CMAKE_INSTALL_PREFIX}/lib/tmpfiles.d")
file(INSTALL "${systemd}/sysusers.conf" RENAME stagecoach.conf
     DESTINATION "${CMAKE_INSTALL_PREFIX}/lib/sysusers.d")
file(REMOVE_RECURSE "${stagecoach_made}")
