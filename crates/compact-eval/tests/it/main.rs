//! The generated sessions are what they claim to be.

#[cfg(test)]
mod decay;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod recall;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod session;
#[cfg(test)]
mod statement;
