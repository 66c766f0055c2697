//! Names of repositories, and settings before and after.
