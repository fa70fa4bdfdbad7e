import { Link, type LinkProps } from 'react-router';
import { type ButtonSize, type ButtonVariant, buttonStyle } from './button-style';

type ButtonLinkProps = LinkProps & { variant?: ButtonVariant; size?: ButtonSize; className?: string };

export function ButtonLink({ variant, size, className, ...rest }: ButtonLinkProps) {
  return <Link className={buttonStyle(variant, size, className)} {...rest} />;
}
