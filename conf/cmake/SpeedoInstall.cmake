# What `cmake --install` puts where: the component `programs` (programs, manual, completion, examples,
# configuration, units) and the component `development` (headers, libraries, package configuration).
include(CMakePackageConfigHelpers)

# The manual and the completions, as the program prints them.
set(printed ${PROJECT_BINARY_DIR}/printed)
file(MAKE_DIRECTORY ${printed}/man)
add_custom_command(
  OUTPUT ${printed}/man/speedo.1 ${printed}/speedo.bash ${printed}/speedo.zsh
  COMMAND speedo manual --folder ${printed}/man
  COMMAND speedo completion bash > ${printed}/speedo.bash
  COMMAND speedo completion zsh > ${printed}/speedo.zsh
  DEPENDS speedo VERBATIM)
add_custom_target(speedo_printed ALL
  DEPENDS ${printed}/man/speedo.1 ${printed}/speedo.bash ${printed}/speedo.zsh)

set(share ${CMAKE_INSTALL_DATADIR}/speedo)
install(DIRECTORY ${printed}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs)
set(completions ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${printed}/speedo.bash DESTINATION ${completions} RENAME speedo COMPONENT programs)
foreach(program speedo-master speedo-worker)
  file(CREATE_LINK speedo ${printed}/${program} SYMBOLIC)
  install(FILES ${printed}/${program} DESTINATION ${completions} COMPONENT programs)
endforeach()
set(doc ${CMAKE_INSTALL_DATADIR}/doc/speedo)
install(FILES LICENSE README.md DESTINATION ${doc} COMPONENT programs)

# As in the source tree: the paths in prototxts begin above examples/.
install(FILES conf/speedo.toml conf/redis.conf conf/redis-acl.conf conf/hybrid.toml conf/groups.txt
        DESTINATION ${share}/conf COMPONENT programs)
install(FILES conf/packages/install.sh DESTINATION ${share}/conf/packages COMPONENT programs)
install(DIRECTORY examples DESTINATION ${share} COMPONENT programs USE_SOURCE_PERMISSIONS
  FILES_MATCHING PATTERN "*.prototxt" PATTERN "*.toml" PATTERN "*.sh" PATTERN "*.py"
  PATTERN "*.md" PATTERN "*.cpp" PATTERN "CMakeLists.txt"
  PATTERN "quickstart.sh" EXCLUDE PATTERN "*_lmdb" EXCLUDE PATTERN "build*" EXCLUDE)

# Where the rest goes, and what it says, depends on the prefix that the installation is given.
set(SPEEDO_PRINTED ${printed})
set(SPEEDO_DOC ${doc})
configure_file(conf/cmake/install_for_prefix.cmake.in install_for_prefix.cmake @ONLY)
install(SCRIPT ${PROJECT_BINARY_DIR}/install_for_prefix.cmake COMPONENT programs)

install(DIRECTORY include/speedo DESTINATION include COMPONENT development)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/speedo)
install(EXPORT speedo NAMESPACE speedo:: FILE speedo-targets.cmake DESTINATION ${package}
        COMPONENT development)
configure_package_config_file(conf/cmake/speedo-config.cmake.in speedo-config.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/speedo-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/speedo-config.cmake
              ${PROJECT_BINARY_DIR}/speedo-config-version.cmake conf/cmake/FindOneDNN.cmake
        DESTINATION ${package} COMPONENT development)
